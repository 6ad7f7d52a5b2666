import { fork } from 'node:child_process';
import { join } from 'node:path';

/** A server in a separate process: it has a core as in production, and shares none with the measuring process. */
export interface ServerProcess extends AsyncDisposable {
  readonly url: string;
  /** Bytes of memory, after a garbage collection. */
  memory(): Promise<number>;
  /** Microseconds of processor time since its start. */
  processor(): Promise<number>;
}

export type ToServer = 'memory' | 'processor';
export type FromServer = { readonly url: string } | { readonly memory: number } | { readonly processor: number };

/** Starts `program` (a file beside this one) on a database. */
export async function startServerProcess(
  program: string,
  databaseUrl: string,
  ...others: readonly string[]
): Promise<ServerProcess> {
  const child = fork(join(import.meta.dirname, program), [databaseUrl, ...others], { execArgv: ['--expose-gc'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const next = () =>
    new Promise<FromServer>((resolve, reject) => {
      child.once('message', (message) => resolve(message as FromServer)); // what answering.ts sends
      void ended.then(() => reject(new Error(`${program} ended before it listened.`)));
    });
  const ask = async (question: ToServer) => {
    const answer = next();
    child.send(question);
    return answer;
  };
  const first = await next();
  return {
    url: 'url' in first ? first.url : '',
    async memory() {
      const message = await ask('memory');
      return 'memory' in message ? message.memory : 0;
    },
    async processor() {
      const message = await ask('processor');
      return 'processor' in message ? message.processor : 0;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
