/**
 * Started beside a test server with the server's process id and its folder. Its standard input is a pipe from
 * the process that owns the server. If the pipe ends without the word `released`, the owner is gone (an
 * interrupt, a crash, SIGKILL), so the server is stopped and its files are removed.
 */
import { rmSync } from 'node:fs';
import { text } from 'node:stream/consumers';

const [serverId, directory] = process.argv.slice(2);
if (serverId === undefined || directory === undefined) throw new Error('usage: postgres-watch.ts PID DIRECTORY');

if ((await text(process.stdin)) === '') {
  const isAlive = (signal: 'SIGQUIT' | 0) => {
    try {
      return process.kill(Number(serverId), signal);
    } catch {
      return false;
    }
  };
  if (isAlive('SIGQUIT')) {
    while (isAlive(0)) await new Promise((resolve) => setTimeout(resolve, 50));
  }
  rmSync(directory, { recursive: true, force: true });
}
