import { fork } from 'node:child_process';
import { join } from 'node:path';

export interface Load {
  readonly url: string;
  /** Sent one after the other, over and over; each answer must hold its `expected` text. */
  readonly requests: readonly { readonly path: string; readonly body: string; readonly expected: string }[];
  readonly connections: number;
  readonly milliseconds: number;
}

/** Has another process send requests over connections that are kept alive, each with its next request when its last was answered. Requests a second. */
export async function requestsPerSecond(load: Load): Promise<number> {
  const child = fork(join(import.meta.dirname, 'load-process.ts'));
  const answer = new Promise<number>((resolve, reject) => {
    child.once('message', (message) =>
      typeof message === 'number' ? resolve(message) : reject(new Error(String(message))),
    );
    child.once('exit', () => reject(new Error('The load generator ended without an answer.')));
  });
  child.send(load);
  return answer;
}
