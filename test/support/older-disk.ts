import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import type { PostgresCluster } from './postgres-cluster.ts';

/** Crashes a server and starts it again. Returns a function that puts its disk back as it is now: later transactions are lost. */
export async function olderDisk(server: PostgresCluster): Promise<() => Promise<void>> {
  const copy = `${server.dataDirectory}-copy`;
  await server.kill();
  execFileSync('cp', ['-a', server.dataDirectory, copy]);
  await server.restart();
  return async () => {
    await server.kill();
    rmSync(server.dataDirectory, { recursive: true });
    execFileSync('mv', [copy, server.dataDirectory]);
    await server.restart();
  };
}
