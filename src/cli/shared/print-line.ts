import { once } from 'node:events';

/** Prints a line, and waits until the output's reader has room for more: a command may print more than it has memory for. */
export async function printLine(text: string): Promise<void> {
  console.log(text);
  if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
}
