import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRefold, defineConfig, defineProjection, type Refold, t } from '../../src/index.ts';
import { account } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let refold: Refold | undefined;
let said: { msg: string; failed?: number; waiting?: number }[];

beforeEach(async () => {
  database = await createTestDatabase();
  said = [];
});
afterEach(async () => {
  await refold?.stop();
  await database.drop();
});

function credits(onError: 'stop' | 'dead-letter') {
  return defineProjection({
    name: 'credits',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Credited: (row, { payload: { amount } }) => {
        if (amount === '13') throw new Error('thirteen is bad luck');
        return { credits: (row?.credits ?? 0) + 1 };
      },
    },
    onError,
  });
}

async function start(onError: 'stop' | 'dead-letter'): Promise<Refold> {
  refold = await createRefold(
    defineConfig({ projections: [credits(onError)], database: { url: database.url }, gateway: { port: 0 } }),
    { logger: pino({ level: 'warn' }, { write: (line: string) => void said.push(JSON.parse(line)) }) },
  );
  const events = ['1', '13', '2', '13'].map((amount) => ({ type: 'Credited', payload: { amount } }) as const);
  await refold.log.append({ family: account, streamId: 'a', events });
  return refold;
}

test('a stopped processor is shown in /health/ready, which stays ready, and in /metrics', async () => {
  const { url } = await start('stop');
  const body = await until(async () => {
    const response = await fetch(`${url}/health/ready`);
    expect(response.status).toBe(200);
    const text = await response.text();
    return text.includes('stopped') && text;
  });
  expect(JSON.parse(body)).toEqual({
    ready: true,
    projections: [{ projection: 'credits', version: 1, state: 'active', ready: true, processor: 'stopped' }],
  });
  await until(async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes(
      'refold_processor_stopped{projection="credits",version="1"} 1',
    ),
  );
});

test('dead letters cause one log line per batch, and a figure in /metrics', async () => {
  const { url } = await start('dead-letter');
  await until(async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes('refold_dead_letters{projection="credits",version="1"} 3'),
  );
  await until(() => said.some(({ failed }) => failed !== undefined));
  expect(said.filter(({ failed }) => failed !== undefined)).toMatchObject([
    {
      failed: 1,
      waiting: 2,
      msg: "credits@1: 3 dead letters: 1 could not be folded, 2 wait behind one of their row. credits@1: evolve of 'Credited' failed at position 2 (stream 'a', event 2): thirteen is bad luck",
    },
  ]);
});
