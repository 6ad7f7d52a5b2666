import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import type { Transaction } from '../../../src/store/postgres/transaction.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { openTransaction } from '../../support/held-locks.ts';
import { account, all, deposited } from '../log/families.ts';

const { database, db, log } = await databaseOfFile(account);
// Of other programs.
const others = createDatabase({ url: database.url, maxConnections: 12 });
afterAll(() => others.close());

const append = (to: EventLog, streamId: string, amount: number, key?: string) =>
  to.append({
    family: account,
    streamId,
    events: [deposited(amount)],
    ...(key === undefined ? {} : { idempotencyKey: key }),
  });

const lockStream = (tx: Transaction, streamId: string) =>
  tx.query({ text: 'select from refold.streams where stream_id = $1 for update', values: [streamId] });

/** What other transactions hold. Each has a stream of this name, and appends that wait for it. */
const kinds = {
  stream: {
    before: (name: string) => append(log, name, 0),
    hold: (name: string) => (tx: Transaction) => lockStream(tx, name),
    send: (to: EventLog, name: string, amount: number) => append(to, name, amount),
  },
  'stream that is not committed yet': {
    before: async () => {},
    hold: (name: string) => (tx: Transaction) =>
      log.append({ family: account, streamId: name, events: [deposited(0)] }, tx),
    send: (to: EventLog, name: string, amount: number) => append(to, name, amount),
  },
  'one of two streams': {
    before: (name: string) => append(log, `also ${name}`, 0),
    hold: (name: string) => (tx: Transaction) => lockStream(tx, `also ${name}`),
    send: (to: EventLog, name: string, amount: number) =>
      to.appendToStreams({
        streams: [`also ${name}`, name].map((streamId) => ({
          family: account,
          streamId,
          events: [deposited(amount)],
        })),
      }),
  },
  'idempotency key': {
    before: async () => {},
    hold: (name: string) => (tx: Transaction) =>
      log.append(
        { family: account, streamId: `first of ${name}`, events: [deposited(0)], idempotencyKey: `${name} 1` },
        tx,
      ),
    send: (to: EventLog, name: string, amount: number) => append(to, name, amount, `${name} 1`),
  },
} as const;

const amounts = async (streamId: string) =>
  (await all(log.readStream(account, streamId))).map(({ payload }) => (payload as { amount: number }).amount);

const holder = fc.record({
  kind: fc.constantFrom(...(Object.keys(kinds) as (keyof typeof kinds)[])),
  end: fc.constantFrom('commit' as const, 'rollback' as const),
  sends: fc.integer({ min: 1, max: 4 }),
});

describe('what other transactions hold', () => {
  test('stops the appends that need it, and no others: each of those is written once it is free, or refused in time', async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(holder, { minLength: 1, maxLength: 9 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 12 }),
        async (holders, patient, callers) => {
          const prefix = `run ${run++}`;
          // What is patient waits until it is free, which this test decides.
          const queue = createEventLog(db, [account], { lockTimeoutMs: patient ? 300_000 : 250 });
          const held = holders.map((one, index) => ({ ...one, ...kinds[one.kind], name: `${prefix} held ${index}` }));
          await Promise.all(held.map(({ before, name }) => before(name)));
          const open = await Promise.all(held.map(({ hold, name }) => openTransaction(others, hold(name))));
          const sent = held.map(({ send, name, sends }) =>
            Promise.allSettled(Array.from({ length: sends }, (_, index) => send(queue, name, index + 1))),
          );
          const free = async (name: string) => {
            for (let amount = 1; amount <= 6; amount++) await append(queue, name, amount, `${name} ${amount}`);
            return amounts(name);
          };
          const names = Array.from({ length: callers }, (_, caller) => `${prefix} free ${caller}`);
          const written = await Promise.all(names.map(free)); // all is held until then
          expect(written).toEqual(names.map(() => [1, 2, 3, 4, 5, 6]));
          if (!patient) await Promise.all(sent);
          await Promise.all(open.map((transaction, index) => transaction.end(held[index]?.end ?? 'commit')));
          for (const [index, { name, kind, sends, end }] of held.entries()) {
            const outcomes = await (sent[index] ?? []);
            if (!patient) {
              for (const outcome of outcomes)
                expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'STREAM_LOCKED' } });
            } else expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => 'fulfilled'));
            const first =
              kind === 'stream' || (kind === 'stream that is not committed yet' && end === 'commit') ? [0] : [];
            const once = kind === 'idempotency key' ? (end === 'commit' ? 0 : 1) : sends;
            const expected = patient ? Array.from({ length: once }, (_, number) => number + 1) : [];
            expect(await amounts(name), kind).toEqual([...first, ...expected]);
          }
        },
      ),
      { numRuns: effort(25, 5) },
    );
  });

  test('is named in the error of an append that waited for it', async () => {
    const queue = createEventLog(db, [account], { lockTimeoutMs: 250 });
    const open = await openTransaction(others, (tx) =>
      log.append({ family: account, streamId: 'a', events: [deposited(0)], idempotencyKey: 'taken' }, tx),
    );
    const settled = await Promise.allSettled([append(queue, 'a', 1), append(queue, 'b', 1, 'taken')]);
    await open.end('rollback');
    expect(settled).toMatchObject([
      { reason: { code: 'STREAM_LOCKED', message: expect.stringContaining("'a' of account: another transaction") } },
      { reason: { code: 'STREAM_LOCKED', message: expect.stringContaining("idempotency key 'taken': another") } },
    ]);
  });

  test('leaves the other streams of an append that waits for it to others, so that the application can go on', async () => {
    for (const name of ['one', 'two']) await append(log, name, 0);
    const queue = createEventLog(db, [account], { lockTimeoutMs: 300_000 }); // no deadlock ends by its limit
    const step = Promise.withResolvers<void>();
    const own = others.transaction(async (tx) => {
      await lockStream(tx, 'two');
      step.resolve();
      for (let amount = 1; amount <= 20; amount++) await append(createEventLog(db, [account]), 'one', amount);
      await lockStream(tx, 'one');
    });
    await step.promise;
    const both = ['one', 'two'].map((streamId) => ({ family: account, streamId, events: [deposited(99)] }));
    const { streams } = await queue.appendToStreams({ streams: both });
    await own;
    expect(streams.map(({ version }) => version)).toEqual([22, 2]);
  });

  test('and a table that is locked whole refuse all appends in time', async () => {
    const queue = createEventLog(db, [account], { lockTimeoutMs: 250 });
    const administrators = createDatabase({ url: database.superuserUrl, maxConnections: 1 });
    const open = await openTransaction(administrators, (tx) =>
      tx.query({ text: 'lock table refold.events in share mode' }),
    );
    const settled = await Promise.allSettled(Array.from({ length: 40 }, (_, index) => append(queue, `t ${index}`, 1)));
    await open.end('commit');
    for (const outcome of settled)
      expect(outcome).toMatchObject({
        reason: { code: 'STREAM_LOCKED', message: expect.stringContaining('the table refold.events: another') },
      });
    await append(queue, 't 0', 1);
    await administrators.close();
  });

  test('is waited for in total, also if every statement ends with a deadlock', async () => {
    const deadlocking: Database['query'] = () =>
      db.query({ text: `do $$ begin raise exception 'x' using errcode = 'deadlock_detected'; end $$` });
    const unlucky = createEventLog({ ...db, query: deadlocking }, [account], { lockTimeoutMs: 250 });
    await expect(append(unlucky, 'unlucky', 1)).rejects.toMatchObject({ code: 'STREAM_LOCKED' });
  });
});
