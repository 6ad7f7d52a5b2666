import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineCommand } from '../../../src/commands/define-command.ts';
import { defineState } from '../../../src/commands/define-state.ts';
import { inputFingerprint } from '../../../src/commands/input-fingerprint.ts';
import { CommandRejected, createRefold, defineConfig } from '../../../src/index.ts';
import { type ExecuteResult, executeCommand } from '../../../src/runtime/commands/command-handler.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { pruneAppendKeys } from '../../../src/store/log/append-statement.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { until } from '../../support/until.ts';
import { account, all, deposited } from './families.ts';

const { database: testDatabase, db, log } = await databaseOfFile(account);

const deposit = defineCommand({
  name: 'deposit',
  input: z.object({ id: z.string(), amount: z.int(), note: z.string().default(() => String(Math.random())) }),
  events: account,
  stream: ({ id }) => id,
  decide: ({ amount }) => deposited(amount),
});
const send = (input: unknown, idempotencyKey: string) =>
  executeCommand(log, deposit, input, { idempotencyKey }, { forClients: true });
const otherInput = { code: 'BAD_USER_INPUT', issues: [{ path: ['idempotencyKey'] }] };

describe('an idempotency key of a client', () => {
  test('returns the same result for the same input, and is refused for another input', async () => {
    const first = await send({ id: 'a', amount: 5 }, 'k1');
    expect(await send({ amount: 5, id: 'a' }, 'k1')).toEqual(first);
    await expect(send({ id: 'a', amount: 6 }, 'k1')).rejects.toMatchObject(otherInput);
    expect(await log.streamVersion(account, 'a')).toBe(1);
  });

  test('does so for concurrent executions, too', async () => {
    const sent = [5, 6, 5, 6, 5, 6].map((amount) => send({ id: 'b', amount }, 'k2'));
    const settled = await Promise.allSettled(sent);
    const written = await all(log.readStream(account, 'b'));
    expect(written).toHaveLength(1);
    const [first] = written;
    for (const [index, outcome] of settled.entries()) {
      const same = (index % 2 === 0 ? 5 : 6) === (first?.payload as { amount: number }).amount; // a deposit
      if (same) expect(outcome).toMatchObject({ status: 'fulfilled', value: { streamVersion: 1 } });
      else expect(outcome).toMatchObject({ status: 'rejected', reason: otherInput });
    }
  });

  test('returns the first result even if the first execution has made the command impossible or empty', async () => {
    const untouched = defineState(account, () => true, { Deposited: () => false });
    const open = (whenTouched: () => readonly []) =>
      defineCommand({
        name: 'open',
        input: z.object({ id: z.string() }),
        state: untouched,
        stream: ({ id }) => id,
        decide: (_, isUntouched) => (isUntouched ? deposited(1) : whenTouched()),
      });
    const refuse = () => {
      throw new CommandRejected('It is open.');
    };
    for (const [id, whenTouched] of Object.entries({ refused: refuse, nothing: () => [] as const })) {
      const command = open(whenTouched);
      const options = { idempotencyKey: `open ${id}` };
      let first: ExecuteResult | undefined;
      const overtaken: EventLog = {
        ...log,
        async findAppend(key, fingerprint) {
          const found = await log.findAppend(key, fingerprint);
          first ??= await executeCommand(log, command, { id }, options, { forClients: true });
          return found;
        },
      };
      expect(await executeCommand(overtaken, command, { id }, options, { forClients: true })).toEqual(first);
      await expect(
        executeCommand(overtaken, open(refuse), { id }, { ...options, idempotencyKey: 'another' }),
      ).rejects.toThrow('It is open.');
    }
  });

  test('recorded before fingerprints existed still returns its result', async () => {
    await executeCommand(log, deposit, { id: 'c', amount: 5 }, { idempotencyKey: 'k3' });
    expect((await send({ id: 'c', amount: 6 }, 'k3')).streamVersion).toBe(1);
  });

  test('is deleted when it is old, in small batches, and other keys are kept', async () => {
    for (const key of ['old1', 'old2', 'old3', 'new']) await send({ id: 'd', amount: 1 }, key);
    await log.append({ family: account, streamId: 'd', events: [deposited(1)], idempotencyKey: 'import:1' });
    await db.query({
      text: `
        update refold.append_keys
        set recorded_at = recorded_at - interval '8 days'
        where key like '%old%' or key = 'import:1'`,
    });
    expect([await pruneAppendKeys(db, 7, 2), await pruneAppendKeys(db, 7, 2), await pruneAppendKeys(db, 7, 2)]).toEqual(
      [2, 1, 0],
    );
    expect(await log.findAppend('import:1')).toBeDefined();
    expect(await log.findAppend('deposit:new')).toBeDefined();
    await send({ id: 'd', amount: 2 }, 'old1');
    expect(await log.streamVersion(account, 'd')).toBe(6);
  });

  test('is deleted by the processes that maintain read tables', async () => {
    await send({ id: 'e', amount: 1 }, 'ancient');
    await db.query({
      text: `update refold.append_keys set recorded_at = recorded_at - interval '3 days' where key = 'deposit:ancient'`,
    });
    const config = defineConfig({
      commands: [deposit],
      database: { url: testDatabase.url },
      runtime: { idempotencyDays: 2 },
    });
    const refold = await createRefold(config, { role: 'worker' });
    try {
      await until(async () => (await log.findAppend('deposit:ancient')) === undefined);
    } finally {
      await refold.stop();
    }
  });
});

test('many concurrent commands on one stream all run, one after the other', async () => {
  const count = defineState(account, () => 0, { Deposited: (before) => before + 1 });
  const next = defineCommand({
    name: 'next',
    input: z.object({ id: z.string() }),
    state: count,
    stream: ({ id }) => id,
    decide: (_, before) => deposited(before + 1),
  });
  const refold = await createRefold(
    defineConfig({ database: { url: testDatabase.url }, events: [account], commands: [next], gateway: { port: 0 } }),
  );
  try {
    const numbers = Array.from({ length: 60 }, (_, index) => index + 1);
    const results = await Promise.all(numbers.map(() => refold.execute(next, { id: 'hot' })));
    expect(results.map(({ streamVersion }) => streamVersion).sort((a, b) => a - b)).toEqual(numbers);
    const written = await all(log.readStream(account, 'hot'));
    expect(written.map(({ payload }) => payload)).toEqual(numbers.map((number) => deposited(number).payload));
  } finally {
    await refold.stop();
  }
});

test('equal inputs have equal fingerprints, and different inputs have different ones', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      const shuffled = JSON.parse(JSON.stringify(one), (_, value) =>
        value && typeof value === 'object' && !Array.isArray(value)
          ? Object.fromEntries(Object.entries(value).reverse())
          : value,
      );
      expect(inputFingerprint(shuffled)).toBe(inputFingerprint(JSON.parse(JSON.stringify(one))));
      const equal = (() => {
        try {
          expect(JSON.parse(JSON.stringify(other))).toEqual(JSON.parse(JSON.stringify(one)));
          return true;
        } catch {
          return false;
        }
      })();
      expect(inputFingerprint(other) === inputFingerprint(one)).toBe(equal);
    }),
  );
});

describe('a stream that another transaction holds', () => {
  test('fails its appends after the lock timeout, and no other appends', async () => {
    const patient = createEventLog(db, [account], { maxInFlight: 1, lockTimeoutMs: 300 });
    await log.append({ family: account, streamId: 'held', events: [deposited(1)] });
    const append = (streamId: string) => patient.append({ family: account, streamId, events: [deposited(1)] });
    await db.transaction(async (tx) => {
      await tx.query({ text: `select from refold.streams where stream_id = 'held' for update` });
      const ids = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 'held' : `free ${index}`));
      const settled = await Promise.allSettled(ids.map(append));
      for (const [index, outcome] of settled.entries()) {
        if (index % 2 === 1) expect(outcome).toMatchObject({ status: 'fulfilled' });
        else
          expect(outcome).toMatchObject({
            status: 'rejected',
            reason: { code: 'STREAM_LOCKED', fields: { streams: [{ family: 'account', streamId: 'held' }] } },
          });
      }
      // The in-flight slot is free again.
      await append('free after');
    });
    expect((await append('held')).streams[0]?.version).toBe(2);
    // The timeout is set for the statement, not for the session.
    expect(await db.query({ text: 'show lock_timeout' })).toEqual([{ lock_timeout: '0' }]);
  });
});
