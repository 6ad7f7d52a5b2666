import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { freePort, serverAccount } from './postgres-cluster.ts';

export interface PgBouncer {
  /** The given URL, through the pooler. */
  through(url: string): string;
  stop(): Promise<void>;
}

/** A PgBouncer in transaction mode, otherwise with its defaults (it admits 100 clients), in front of the server that a URL names. */
export async function startPgBouncer(
  program: string,
  serverUrl: string,
  { maxClients = 100 }: { readonly maxClients?: number } = {},
): Promise<PgBouncer> {
  const account = serverAccount();
  const { hostname, port: serverPort, username } = new URL(serverUrl);
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'refold-pgbouncer-'));
  const settings = join(directory, 'pgbouncer.ini');
  // Few sessions for many clients, so clients really share them.
  writeFileSync(
    settings,
    `[databases]
* = host=${hostname} port=${serverPort} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 6
max_client_conn = ${maxClients}
`,
    { mode: 0o644 },
  );
  const { uid } = account;
  const asAccount = uid === undefined ? [] : ['-u', 'postgres'];
  const pooler = spawn(program, ['-q', ...asAccount, settings], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  pooler.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const exited = once(pooler, 'exit');
  const through = (url: string) => Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href;
  const stop = async () => {
    if (pooler.exitCode === null && pooler.signalCode === null) pooler.kill('SIGTERM');
    await exited;
    rmSync(directory, { recursive: true, force: true });
  };
  while (!(await answers(through(serverUrl)))) {
    if (pooler.exitCode === null) continue;
    await stop();
    throw new Error(`PgBouncer did not start:\n${said}`);
  }
  return { through, stop };
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-harness' });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('select 1');
    await client.end();
    return true;
  } catch {
    await client.end().catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 20));
    return false;
  }
}
