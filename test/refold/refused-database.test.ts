import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Config, createRefold, defineConfig, defineReactor, type Refold } from '../../src/index.ts';
import { untilActive } from '../support/patient.ts';
import { freePort } from '../support/postgres-cluster.ts';
import { account, balanceV1, openAccount } from '../support/sample-domain.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

interface Process {
  readonly refold: Refold;
  /** What it has logged as a warning or an error. */
  readonly lines: string[];
}

let database: TestDatabase;
let proxy: TcpProxy;
const processes: Process[] = [];

const heard: string[] = [];
const listener = defineReactor({
  name: 'listener',
  events: account,
  from: 'beginning',
  handle: { Opened: async ({ streamId }) => void heard.push(streamId) },
});

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startTcpProxy(Number(new URL(database.url).port));
  const common = { database: { url: proxy.through(database.url) }, gateway: { port: 0 } };
  // First: a process that declares no version is refused once one is active.
  await start('worker', defineConfig({ ...common, events: [account], reactors: [listener] }));
  await start('worker', defineConfig({ ...common, projections: [balanceV1] }));
  const { refold } = await start(
    'gateway',
    defineConfig({ ...common, projections: [balanceV1], commands: [openAccount] }),
  );
  await untilActive(refold, 'balance@1');
});
afterAll(async () => {
  for (const { refold } of processes) await refold.stop();
  await proxy?.close();
  await database?.drop();
});

async function start(role: 'gateway' | 'worker', config: Config): Promise<Process> {
  const lines: string[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  const started = { refold: await createRefold(config, { role, logger }), lines };
  processes.push(started);
  return started;
}

const open = (refold: Refold, streamId: string) =>
  refold.log.append({ family: account, streamId, events: [{ type: 'Opened', payload: { owner: 'ada' } }] });

test('a server that refuses connections is a line in each process when it goes, and one with a count when it is back', async () => {
  const [reactor, worker, gateway] = processes as [Process, Process, Process]; // all that were started
  for (const { lines } of processes) lines.length = 0;
  await open(gateway.refold, 'before');
  await until(() => heard.includes('before'));
  proxy.retarget(await freePort());
  proxy.cutAll();
  await until(() => processes.every(({ lines }) => lines.length > 0));
  await expect(open(gateway.refold, 'never')).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  proxy.retarget(Number(new URL(database.url).port));
  await until(() => processes.every(({ lines }) => lines.some((line) => line.includes('available again'))));
  const outage = [
    expect.stringMatching(/^the database is not available: operations that need it are retried\. /),
    expect.stringMatching(/^the database is available again after \d+ s; \d+ attempts failed$/),
  ];
  expect({ worker: worker.lines, reactor: reactor.lines, gateway: gateway.lines }).toEqual({
    worker: outage,
    reactor: outage,
    gateway: outage,
  });
  const { position } = await open(gateway.refold, 'after');
  await until(() => heard.includes('after'));
  await until(async () => (await worker.refold.status()).every((version) => version.position >= position));
});
