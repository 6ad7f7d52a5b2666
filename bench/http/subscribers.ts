import { fork } from 'node:child_process';
import { join } from 'node:path';

// Ten thousand connections take a while to open on a busy machine.
const patience = 300_000;

export interface SubscribersOptions {
  readonly url: string;
  readonly query: string;
  readonly count: number;
}

/** Many subscribers in a separate process, which all wait for the same counts of items. */
export interface Subscribers extends AsyncDisposable {
  /** When the last of them saw this count, on the machine's monotonic clock in nanoseconds. */
  all(items: number): Promise<bigint>;
}

export async function startSubscribers(options: SubscribersOptions): Promise<Subscribers> {
  const child = fork(join(import.meta.dirname, 'subscribers-process.ts'), [JSON.stringify(options)]);
  const seen = new Map<number, bigint>();
  const waiting = new Map<number, (at: bigint) => void>();
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.on('message', (message) => {
    const { items, at } = message as { items: number; at: string }; // what the process sends
    seen.set(items, BigInt(at));
    waiting.get(items)?.(BigInt(at));
  });
  const all = (items: number) =>
    new Promise<bigint>((resolve, reject) => {
      const at = seen.get(items);
      if (at !== undefined) return resolve(at);
      waiting.set(items, resolve);
      void ended.then(() => reject(new Error('The subscribers ended.')));
      setTimeout(() => reject(new Error(`Not every subscriber has seen ${items} items.`)), patience).unref();
    });
  await all(0);
  return {
    all,
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await ended;
    },
  };
}
