import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** A process that outlives this one and looks after the server that it uses. */
export interface ServerGuard {
  /** Ends the guard, because this process has released the server. */
  dismiss(): void;
  /** Stops the server now, unless another process uses it. */
  act(): void;
}

/**
 * Stops the server of a data directory after this process has ended without releasing it (an exit, an uncaught error, SIGKILL), unless another
 * process uses it. The guard's input ends with this process.
 *
 * @param user the name of this process's session. The guard waits for its end.
 */
export function guardServer(dataDir: string, user: string): ServerGuard {
  const program = join(import.meta.dirname, `embedded-leave${import.meta.filename.slice(-3)}`);
  const leave = [process.execPath, program, dataDir, user];
  // A shell needs a fraction of the time and memory of Node. On Windows there is none, and the program itself waits.
  const waiting = ['/bin/sh', '-c', 'read -r word || exec "$@"', 'sh', ...leave];
  const [command = '', ...parameters] = process.platform === 'win32' ? leave : waiting;
  const guard = spawn(command, parameters, { detached: true, stdio: ['pipe', 'ignore', 'ignore'], windowsHide: true });
  guard.on('error', () => {}); // without a guard, the next process finds the server
  guard.stdin.on('error', () => {});
  guard.unref();
  return { dismiss: () => guard.stdin.end('left\n'), act: () => guard.stdin.end() };
}
