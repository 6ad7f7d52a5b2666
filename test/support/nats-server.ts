import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './postgres-cluster.ts';

/** A NATS server with JetStream, whose messages survive a restart. */
export interface NatsServer {
  /** The same URL after restarts. */
  readonly address: string;
  /** Returns when the server responds. */
  start(): Promise<void>;
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Stops the server and deletes its messages. */
  remove(): Promise<void>;
}

export async function createNatsServer(program: string): Promise<NatsServer> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'refold-nats-'));
  let server: ChildProcess | undefined;

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill(signal);
    await exited;
  }

  return {
    address: `127.0.0.1:${port}`,
    async start() {
      const started = spawn(program, ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', directory], {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      server = started;
      let said = '';
      started.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
      while (!(await answers(port))) {
        if (started.exitCode !== null) throw new Error(`The NATS server did not start:\n${said}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    end,
    async remove() {
      await end('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
