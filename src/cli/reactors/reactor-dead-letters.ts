import { setTimeout as pause } from 'node:timers/promises';
import { integer } from '../shared/format.ts';
import type { Operation } from '../shared/open-operation.ts';

/**
 * Requests that the process that owns the reactor retries or discards its dead letters. Waits for the result if a process runs the reactor.
 */
export async function redeliverReactorLetters(
  { reactors, actor }: Operation,
  name: string,
  what: 'retry' | 'discard',
  {
    key,
    reason = 'by hand',
    json = false,
  }: { readonly key: string | undefined; readonly reason: string | undefined; readonly json?: boolean | undefined },
): Promise<void> {
  const asked = await reactors.redeliver(name, what, { actor, reason }, key);
  for (;;) {
    const letters = (await reactors.deadLetters(name)).filter((letter) => key === undefined || letter.key === key);
    if (letters.every(({ requested }) => requested === null)) {
      const done = Math.max(0, asked - letters.length);
      // Nothing was done: a script must see a failure.
      if (done === 0) process.exitCode = 1;
      if (json) return console.log(JSON.stringify({ done, left: letters.length }));
      const count = done === 0 ? 'nothing could be' : integer(done);
      const why = letters.length > 0 ? ` 'refold dead-letters list ${name}' shows why.` : '';
      console.log(
        `${name}: ${count} ${what === 'retry' ? 'handled' : 'discarded or handled'}, ${integer(letters.length)} left.${why}`,
      );
      return;
    }
    const status = (await reactors.status()).find((one) => one.name === name);
    if (status?.state !== 'running') {
      if (json) return console.log(JSON.stringify({ done: 0, left: letters.length, waitsFor: 'owner' }));
      console.log(
        `${name} is ${status?.state ?? 'gone'}: no process runs it now. The request is executed as soon as one does.`,
      );
      return;
    }
    await pause(100);
  }
}
