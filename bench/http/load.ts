import { fork } from 'node:child_process';
import { join } from 'node:path';

export interface Load {
  readonly url: string;
  /** Sent one after another, repeatedly. Each response must contain its `expected` text. */
  readonly requests: readonly { readonly path: string; readonly body: string; readonly expected: string }[];
  readonly connections: number;
  readonly milliseconds: number;
}

/** Another process sends requests over keep-alive connections, each with its next request after its last response. Requests per second. */
export async function requestsPerSecond(load: Load): Promise<number> {
  const child = fork(join(import.meta.dirname, 'load-process.ts'));
  const answer = new Promise<number>((resolve, reject) => {
    child.once('message', (message) =>
      typeof message === 'number' ? resolve(message) : reject(new Error(String(message))),
    );
    child.once('exit', () => reject(new Error('The load generator ended without a result.')));
  });
  child.send(load);
  return answer;
}
