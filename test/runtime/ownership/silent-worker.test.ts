import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineConfig } from '../../../src/index.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
let proxy: TcpProxy;
let running: Runtime[];

beforeEach(async () => {
  database = await createTestDatabase();
  proxy = await startTcpProxy(Number(new URL(database.url).port));
  running = [];
});
afterEach(async () => {
  proxy.resume();
  for (const runtime of running) await runtime.stop();
  await proxy.close();
  await database.drop();
});

// A lease of three seconds instead of thirty, which keeps this test below a minute.
async function start(owner: string, url: string, ownership: 'advisory' | 'lease'): Promise<Runtime> {
  const runtime = await startRuntime({
    config: defineConfig({ projections: [balanceV1], runtime: { ownership, leaseSeconds: 3 } }),
    url,
    owner,
    development: false,
    maintain: true,
    logger: pino({ level: 'silent' }),
  });
  running.push(runtime);
  return runtime;
}

async function ownerOf(runtime: Runtime): Promise<string | null | undefined> {
  return (await runtime.status())[0]?.owner;
}

test.each([
  'advisory',
  'lease',
] as const)('an idle worker takes over the read models of a worker whose network is silent, with ownership %s', async (ownership) => {
  const silent = await start('silent', proxy.through(database.url), ownership);
  await until(async () => (await ownerOf(silent)) === 'silent');
  const idle = await start('idle', database.url, ownership);
  const events = [{ type: 'Opened', payload: { owner: 'ada' } }] as const;
  const before = await idle.log.append({ family: account, streamId: 'before', events: [...events] });
  await idle.positions.waitFor(balanceV1, before.position, { timeout: 300_000 });

  proxy.swallow();
  const during = await idle.log.append({ family: account, streamId: 'during', events: [...events] });
  await idle.positions.waitFor(balanceV1, during.position, { timeout: 300_000 });
  expect(await ownerOf(idle)).toBe('idle');
});
