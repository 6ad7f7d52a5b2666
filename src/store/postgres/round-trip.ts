/** Has what is sent within leave together. The answers come in the order in which it was sent. */
export type Pipeline = <T>(send: () => T) => T;

/** Statements that don't need each other's answers. */
export type Sends<T extends readonly unknown[]> = { readonly [Index in keyof T]: () => Promise<T[Index]> };

/**
 * Sends them in their order and gives all answers: by a pipeline as one round trip, else one after the other. Comes back when nothing is
 * under way any more, also where one fails.
 */
export async function roundTrip<T extends readonly unknown[]>(
  pipeline: Pipeline | undefined,
  sends: Sends<T>,
): Promise<T> {
  const answers: unknown[] = [];
  if (!pipeline) {
    for (const send of sends) answers.push(await send());
    return answers as unknown as T; // one for each, in order
  }
  for (const answer of await Promise.allSettled(pipeline(() => sends.map((send) => send())))) {
    // The first failure is the cause: those behind it find the transaction aborted.
    if (answer.status === 'rejected') throw answer.reason;
    answers.push(answer.value);
  }
  return answers as unknown as T; // one for each, in order
}
