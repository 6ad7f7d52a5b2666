import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineConfig, defineProjection, t } from '../../../src/index.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { auditVersion } from '../../../src/runtime/verification/audit.ts';
import { inlineLocksOf } from '../../../src/store/inline/inline-locks.ts';
import { readVerifications } from '../../../src/store/registry/verifications.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
let runtime: Runtime;
let errors: string[];

beforeEach(async () => {
  database = await createTestDatabase();
  errors = [];
});
afterEach(async () => {
  await runtime.stop();
  await database.drop();
});

async function start(audit: false | { everySeconds: number; oneOf: number }): Promise<void> {
  runtime = await startRuntime({
    config: defineConfig({ projections: [balanceV1], runtime: { audit } }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: 'error' }, { write: (line: string) => void errors.push(JSON.parse(line).msg) }),
  });
  for (let id = 0; id < 40; id++) {
    const events = [
      { type: 'Opened', payload: { owner: 'Ada' } },
      { type: 'Credited', payload: { amount: '10.50' } },
    ] as const;
    await runtime.log.append({ family: account, streamId: `account-${id}`, events: [...events] });
  }
  const horizon = await runtime.log.horizon();
  await until(async () => (await runtime.status()).every(({ position }) => position >= horizon));
}

function audited(round: number, oneOf = 4) {
  const { db, log } = runtime;
  const signal = new AbortController().signal;
  const options = { db, log, readSchema: 'read_models', projection: balanceV1, oneOf, round: BigInt(round) };
  return auditVersion({ ...options, share: 1, signal });
}

test('one audit for each part compares every row once, and finds what was changed, removed or added by hand', async () => {
  await start(false);
  await runtime.db.query({
    text: `update read_models.balance_v1 set amount = amount + 0.01 where account_id = 'account-3'`,
  });
  await runtime.db.query({ text: `delete from read_models.balance_v1 where account_id = 'account-4'` });
  await runtime.db.query({ text: `insert into read_models.balance_v1 values ('stranger', 'nobody', 1, 1)` });
  const rounds = [];
  for (const round of [4, 5, 6, 7]) rounds.push(await audited(round));
  expect(rounds.reduce((sum, found) => sum + (found?.rowsCompared ?? 0), 0)).toBe(40);
  expect(rounds.every((found) => (found?.rowsCompared ?? 40) < 25)).toBe(true);
  expect(
    rounds.flatMap((found) => found?.samples).toSorted((a, b) => (String(a?.key) < String(b?.key) ? -1 : 1)),
  ).toEqual([
    { key: '["account-3"]', kind: 'different', columns: ['amount'] },
    { key: '["account-4"]', kind: 'missing', columns: [] },
    { key: '["stranger"]', kind: 'surplus', columns: [] },
  ]);
});

test('an audit finds nothing in a table that matches the log, while appends continue', async () => {
  await start(false);
  let auditing = true;
  const appends = (async () => {
    for (let n = 0; auditing; n++) {
      await runtime.log.append({
        family: account,
        streamId: `account-${n % 40}`,
        events: [{ type: 'Credited', payload: { amount: '1' } }],
      });
    }
  })();
  for (let round = 0; round < 8; round++) expect(await audited(round, 2)).toMatchObject({ differences: 0 });
  auditing = false;
  await appends;
});

test('a worker audits continuously, and keeps and logs differences', async () => {
  await start({ everySeconds: 1, oneOf: 1 });
  // An audit that began when all rows were there, so later audits see them, too.
  await until(async () => (await readVerifications(runtime.db)).some(({ rowsCompared }) => rowsCompared === 40n));
  await runtime.db.query({ text: `update read_models.balance_v1 set movements = 9 where account_id = 'account-3'` });
  const found = await until(async () => (await readVerifications(runtime.db)).find(({ foundAt }) => foundAt !== null));
  expect(found).toMatchObject({
    name: 'balance',
    version: 1,
    kind: 'audit',
    differences: 1n,
    rowsCompared: 40n,
    samples: [{ key: '["account-3"]', kind: 'different', columns: ['movements'] }],
  });
  await until(() =>
    errors.includes(
      "balance@1: 1 of 40 rows audited are not what the log says. 'refold verify balance@1' compares all, 'refold rebuild balance@1' rebuilds the table.",
    ),
  );
  expect((await runtime.status())[0]?.verification).toMatchObject({ differences: 1, rowsCompared: 40 });
});

test('an audit ends at once when its process stops', async () => {
  await start(false);
  const stopping = new AbortController();
  const { db, log } = runtime;
  const options = { db, log, readSchema: 'read_models', projection: balanceV1, oneOf: 1, round: 0n, share: 1e-9 };
  const ended = auditVersion({ ...options, signal: stopping.signal, onPage: async () => stopping.abort() });
  await expect(ended).rejects.toThrow('aborted');
});

test('an audit that finds a difference names no row with a personal key, neither in the log nor in the status', async () => {
  const lines: string[] = [];
  const secret = defineProjection({
    name: 'secret',
    version: 1,
    events: account,
    table: { accountId: t.text().personal().primaryKey(), opened: t.boolean() },
    key: (event) => event.streamId,
    evolve: { Opened: () => ({ opened: true }) },
  });
  runtime = await startRuntime({
    config: defineConfig({ projections: [secret], runtime: { audit: { everySeconds: 1, oneOf: 1 } } }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) }),
  });
  const streamId = 'ada@example.org';
  const { position } = await runtime.log.append({
    family: account,
    streamId,
    events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
  });
  await runtime.positions.waitFor(secret, position, { timeout: 300_000 });
  await runtime.db.query({ text: 'update read_models.secret_v1 set opened = false' });
  await until(() => lines.some((line) => line.includes('rows audited are not what the log says')));
  const status = await runtime.status();
  expect(status[0]?.verification?.samples).toEqual([{ key: '(hidden)', kind: 'different', columns: ['opened'] }]);
  const text = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
  expect(`${lines.join('')}${JSON.stringify(status, text)}`).not.toContain(streamId);
  const key = new Map([[`["${streamId}"]`, [streamId]]]);
  expect(inlineLocksOf(secret, key)[0]?.what).toBe('a row of secret@1');
});
