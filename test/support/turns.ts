const days = 3;

/** CI takes what is expensive in turns, so that a run stays short: on three successive days, each number has its turn once. */
export function isTurn(number: number, day: number): boolean {
  return (number + day) % days === 0;
}

/** The number of days since 1970. */
export function today(): number {
  return Math.floor(Date.now() / 86_400_000);
}

/** Whether it is the turn of a test file. In CI the seed is the date, such as 20310731, so a repeated seed repeats the choice. */
export function isTurnOf(file: string, seed: number): boolean {
  let sum = 0;
  for (const character of file) sum += character.charCodeAt(0);
  return isTurn(sum, seed);
}
