import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineConfig, defineProjection, t } from '../../../src/index.ts';
import { goLive } from '../../../src/runtime/activation/go-live.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import {
  createInlineSetting,
  creditOf,
  expectRight,
  type InlineSetting,
  joined,
  untilLive,
} from '../../support/inline-setting.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/until.ts';

// Everything runs at its default limits. Without Refold’s limits, the server would wait for hours.
let setting: InlineSetting;
let proxy: TcpProxy;
/** Called while an event of account `a` is folded. */
let onFold = () => {};

const credits = defineProjection({
  name: 'credits',
  version: 1,
  events: account,
  mode: 'inline',
  codeVersion: 1,
  table: { accountId: t.text().primaryKey(), credits: t.integer() },
  key: (event) => event.streamId,
  evolve: {
    Credited: (row, event) => {
      if (event.streamId === 'a') onFold();
      return { credits: (row?.credits ?? 0) + 1 };
    },
  },
});

beforeEach(async () => {
  onFold = () => {};
  setting = await createInlineSetting({ defaultLimits: true });
  proxy = await startTcpProxy(Number(new URL(setting.database.url).port));
});
afterEach(async () => {
  await proxy.close();
  await setting.close();
});

/** Once account `a` is folded, the connections through the proxy are half-open: the server receives nothing from them, not even their end. */
function vanishWhileFolding(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  onFold = () => {
    onFold = () => {};
    proxy.swallowOpen();
    resolve();
  };
  return promise;
}

test('a process that vanishes between an append and its commit blocks neither its stream nor other read models', async () => {
  const runtime = await setting.start([credits, balanceV1]);
  await untilLive(runtime, credits);
  const gateway = await startRuntime({
    config: defineConfig({ projections: [credits, balanceV1], events: [account] }),
    url: proxy.through(setting.database.url),
    owner: 'gateway',
    development: false,
    maintain: false,
    logger: pino({ level: 'silent' }),
  });
  const vanished = vanishWhileFolding();
  const lost = gateway.log.append(creditOf('a')).catch(() => {});
  await vanished;
  const { position } = await until(() => runtime.log.append(creditOf('a')).catch(() => false as const));
  await runtime.positions.waitFor(balanceV1, position, { timeout: 300_000 });
  await lost;
  await expectRight(runtime, credits);
  await gateway.stop();
});

test('a process that vanishes while a version joins the appends blocks them for at most a quarter of a second', async () => {
  const runtime = await setting.start([credits], { maintain: false });
  await runtime.log.append(creditOf('a'));
  const db = createDatabase({ url: proxy.through(setting.database.url) });
  const log = createEventLog(db, [account]);
  const vanished = vanishWhileFolding();
  const options = { db, log, readSchema: 'read_models', freeze: false };
  let isGone = false;
  void vanished.then(() => {
    isGone = true;
  });
  // On a busy machine, the server may also end earlier attempts.
  const joining = until(async () => {
    const outcome = await goLive(options, credits).catch((error: Error) => error);
    return isGone && outcome;
  });
  await vanished;
  // With the default limit, an append waits for at most 5 seconds.
  await runtime.log.append(creditOf('b'));
  expect(await joining).toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  await db.close();
});

test('a version needs one connection to join the appends, even if the pool has only one', async () => {
  const runtime = await setting.start([credits], { maintain: false });
  await runtime.log.append(creditOf('a'));
  const db = createDatabase({ url: setting.database.url, maxConnections: 1 });
  const log = createEventLog(db, [account]);
  let limits: unknown;
  const watched: Database = {
    ...db,
    transaction: (work, options) =>
      db.transaction(async (tx) => {
        const result = await work(tx);
        const read = `select current_setting('lock_timeout') as lock, current_setting('idle_in_transaction_session_timeout') as idle`;
        [limits] = await tx.query({ text: read });
        return result;
      }, options),
  };
  const options = { db: watched, log, readSchema: 'read_models', freeze: false };
  expect(await joined(options, credits)).toBeGreaterThan(0n);
  // What an append may wait for it, beside the fold: together 250 ms.
  expect(limits).toEqual({ lock: '100ms', idle: '150ms' });
  await db.close();
});
