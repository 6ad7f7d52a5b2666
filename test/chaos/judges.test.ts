import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apart, declaredInStores } from '../../chaos/apart.ts';
import { type AuditedStep, installAudit } from '../../chaos/audit.ts';
import type { Answer } from '../../chaos/clients/told.ts';
import { families } from '../../chaos/domain.ts';
import { draftAppend } from '../../chaos/drafts.ts';
import { readEvidence } from '../../chaos/evidence.ts';
import { judges } from '../../chaos/judges/all.ts';
import type { Evidence } from '../../chaos/judges/judge.ts';
import { createLedger } from '../../chaos/ledger.ts';
import { dispatch, reactorsOf } from '../../chaos/reactors.ts';
import { appendDraft } from '../../chaos/traffic.ts';
import { noTrials } from '../../chaos/trials/trials.ts';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readReactors } from '../../src/store/reactors/reactors.ts';
import { seeded } from '../support/account-traffic.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let storeDatabase: TestDatabase;
let db: Database;
let store: Database;
let evidence: Evidence;

// An application at rest, with everything that the judges check. Some read models are in a store of their own.
beforeAll(async () => {
  database = await createTestDatabase();
  storeDatabase = await createTestDatabase();
  db = createDatabase({ url: database.url });
  store = createDatabase({ url: storeDatabase.url });
  for (const one of [db, store]) await installAudit(one);
  const ledger = createLedger();
  const log = createEventLog(db, families);
  const random = seeded(1);
  const outside = new pg.Pool({ connectionString: database.url });
  const refold = await createRefold(
    defineConfig({
      events: families,
      projections: declaredInStores(1, 2),
      commands: [dispatch],
      reactors: reactorsOf(outside),
      database: { url: database.url },
      readStores: { [apart]: { url: storeDatabase.url } },
      development: false,
    }),
    { role: 'worker', logger: pino({ level: 'silent' }) },
  );
  for (let n = 0; n < 600; n++) await appendDraft(log, ledger, 0, draftAppend(random));
  await caughtUp(refold);
  await refold.stop();
  await outside.end();
  const options = { ownership: 'lease', leaseSeconds: 2 } as const;
  const clients = { answers: [], feeds: [] };
  const databases = [
    { name: 'default', db },
    { name: apart, db: store },
  ];
  evidence = await readEvidence(
    { db, databases, log, ledger, clients, options, storeOutages: [], heldStreams: [], trials: noTrials() },
    [],
  );
});
afterAll(async () => {
  await store.close();
  await db.close();
  await storeDatabase.drop();
  await database.drop();
});

const oneOwner = 'a unique value has one owner in the log, and one that a refusal names as taken has an owner there';

async function caughtUp(refold: Refold): Promise<void> {
  const horizon = await refold.log.horizon();
  await until(async () => (await readReactors(db)).every(({ checkpoint }) => checkpoint >= horizon));
  // Including the events that the workflow appended.
  const end = await refold.log.horizon();
  await until(async () =>
    (await refold.status()).every(({ position, state }) => position >= end && state === 'active'),
  );
}

async function found(changed: Partial<Evidence> = {}): Promise<Record<string, readonly string[]>> {
  const all: Record<string, readonly string[]> = {};
  for (const { promise, differences } of judges) {
    const ofJudge = await differences({ ...evidence, ...changed });
    if (ofJudge.length > 0) all[promise] = ofJudge;
  }
  return all;
}

/** The differences that the judges find after a statement, in a transaction that is rolled back. */
async function foundAfter(text: string, where = 'default'): Promise<Record<string, readonly string[]>> {
  const enough = new Error('enough');
  let said: Record<string, readonly string[]> = {};
  const changed = where === apart ? store : db;
  await changed
    .transaction(async (tx) => {
      await tx.query({ text });
      const stores = evidence.stores.map((one) => (one.name === where ? { ...one, db: tx } : one));
      said = await found({ db: changed === db ? tx : db, stores });
      throw enough;
    })
    .catch((error: unknown) => {
      if (error !== enough) throw error;
    });
  return said;
}

test('judges find nothing in an intact application', async () => {
  expect(await found()).toEqual({});
  expect(await store.query({ text: 'select from refold.dead_letters' })).not.toEqual([]);
  expect(evidence.steps.map(({ name }) => name)).toEqual(expect.arrayContaining(['balance', 'sales']));
});

describe('judges find', () => {
  test.each([
    [
      'a value that differs from the fold of the log',
      'update read_models.balance_v2 set movements = movements + 1',
      'default',
    ],
    ['a row that is missing in a store', 'delete from read_models.journal_v1 where position = 3', apart],
    ['an extra row in a store', `insert into read_models.sales_v1 values ('customer nobody', 1, 1, 1)`, apart],
  ])('%s', async (_, text, where) => {
    expect(Object.keys(await foundAfter(text, where))).toEqual([expect.stringContaining('equals one fold')]);
  });

  test.each([
    ['lost', 'delete from refold.dead_letters where id = (select max(id) from refold.dead_letters)'],
    [
      'doubled',
      `insert into refold.dead_letters (name, version, table_name, key, position, event_type, stream_id)
      select name, version, table_name, key, position, event_type, stream_id from refold.dead_letters limit 1`,
    ],
    ['made up', 'update refold.dead_letters set position = position + 1'],
  ])('a dead letter that was %s', async (_, text) => {
    expect(Object.keys(await foundAfter(text, apart))).toEqual([expect.stringContaining('no dead letter is lost')]);
  });

  test('a version that its audit log or its view contradicts', async () => {
    const state = `update refold.projections set state = 'ready' where name = 'balance' and version = 2`;
    expect(Object.values(await foundAfter(state)).flat()).toEqual([
      'balance@2 is ready, but active in the audit log',
      'the view balance shows balance_v2, but balance_v1 is active',
    ]);
    const there = `update refold.projections set state = 'ready' where name = 'sales'`;
    expect(Object.values(await foundAfter(there, apart)).flat()).toEqual([
      'sales@1 is ready, but active in the audit log',
      'the view sales shows sales_v1, but undefined is active',
    ]);
  });

  test('a table that belongs to nothing', async () => {
    for (const where of ['default', apart])
      expect(Object.values(await foundAfter('create table read_models.stray (id int)', where)).flat()).toEqual([
        'read_models.stray belongs to nothing, and nothing will drop it',
      ]);
  });

  test('an append that is lost, doubled, or that no writer sent', async () => {
    const { events } = evidence;
    const [first] = events;
    if (!first) throw new Error('there are events');
    expect(Object.keys(await found({ events: events.slice(1) }))).toContainEqual(
      expect.stringContaining('every acknowledged append'),
    );
    expect(Object.keys(await found({ events: [...events, first] }))).toContainEqual(
      expect.stringContaining('the positions of each stream'),
    );
    const stranger = { ...first, payload: { append: 1_000_000, part: 0 } };
    expect(Object.values(await found({ events: [...events.slice(1), stranger] })).flat()).toContain(
      'append 1000000 is in the log, but no writer sent it',
    );
  });

  test('a workflow step that is missing, or that ran twice', async () => {
    const { events } = evidence;
    const last = events.findLast(({ family }) => family === 'parcel');
    if (!last) throw new Error('there are parcels');
    const { order, append } = last.payload as { order: string; append: number }; // its family's
    expect(Object.values(await found({ events: events.filter((event) => event !== last) })).flat()).toContainEqual(
      expect.stringContaining(`(${order} ${append}) led to 0 parcels`),
    );
    expect(Object.values(await found({ events: [...events, last] })).flat()).toContainEqual(
      expect.stringContaining(`(${order} ${append}) led to 2 parcels`),
    );
  });

  test('a message that was not sent, or that the same owner sent twice', async () => {
    const lost = await foundAfter('delete from chaos.messages where number = 1');
    expect(Object.values(lost).flat()).toEqual([expect.stringContaining('no message was sent for the order at')]);
    const doubled = await foundAfter(
      `insert into chaos.messages (id, position, attempt, at)
      select id, position, attempt, at + interval '1 second' * n
      from chaos.messages, generate_series(1, 2) n
      where number = 1`, // one more than the claim at its beginning explains
    );
    expect(Object.values(doubled).flat()).toEqual([expect.stringContaining('was sent 3 times')]);
  });

  test('a checkpoint that goes back, and a batch of a former owner', async () => {
    const [step] = evidence.steps;
    if (!step) throw new Error('there are steps');
    // Of a processor of its own: what the last step of another was is left to chance.
    const claim: AuditedStep = {
      ...step,
      name: 'made_up',
      writer: 'worker 0.1',
      status: 'running',
      checkpointBefore: 0n,
      checkpoint: 0n,
      epochBefore: 0n,
      epoch: 1n,
    };
    const batch = { ...claim, epochBefore: 1n, checkpoint: 5n };
    const steps = [...evidence.steps, claim, batch];
    const next = { ...batch, checkpointBefore: 5n };
    expect(await found({ steps })).toEqual({});
    expect(Object.values(await found({ steps: [...steps, { ...next, checkpoint: 4n }] })).flat()).toEqual([
      expect.stringContaining('went back from 5'),
    ]);
    expect(Object.values(await found({ steps: [...steps, { ...next, writer: 'worker 1.1' }] })).flat()).toEqual([
      expect.stringContaining('wrote a batch in epoch 1'),
    ]);
    // What a store holds of events that the log has lost is not continued. Without a lost tail, it must be.
    const held = { ...next, checkpoint: 0n };
    expect(Object.values(await found({ steps: [...steps, held] })).flat()).toEqual([
      expect.stringContaining('went back from 5'),
    ]);
    const { entries, begin, cut, count } = evidence.ledger;
    const cuts = [{ from: held.at - 1, to: held.at, head: 5n }];
    const ledger = { entries, begin, cut, count, cuts };
    expect(Object.keys(await found({ steps: [...steps, held], ledger }))).not.toContainEqual(
      expect.stringContaining('each checkpoint'),
    );
  });

  test('a fail-over that took too long, where nothing else was done meanwhile', async () => {
    const failOver = {
      cause: 'kill',
      processor: 'balance@1',
      store: 'default',
      milliseconds: 60_000,
      cpuWaitMilliseconds: 54_499,
      alone: true,
    } as const;
    expect(Object.values(await found({ failOvers: [{ ...failOver, alone: false }] })).flat()).toEqual([]);
    expect(await found({ failOvers: [{ ...failOver, cpuWaitMilliseconds: 54_500 }] })).toEqual({});
    expect(Object.values(await found({ failOvers: [failOver] })).flat()).toEqual([
      "balance@1 in 'default' had no owner for 60000 ms after a kill; at most 5500 ms are promised, and 54499 ms without a free processor are allowed for",
    ]);
    const ofStore = { ...failOver, cause: 'cut off', processor: 'sales@1', store: apart } as const;
    expect(Object.values(await found({ failOvers: [ofStore] })).flat()).toEqual([
      expect.stringContaining("sales@1 in 'apart' had no owner for 60000 ms after a cut off"),
    ]);
  });

  test('a version that stood still while another store was away, and one that did not catch up', async () => {
    const outage = { how: 'down', from: 1, to: 2, appended: 3, stuck: [], behind: [], caughtUpMs: 9 } as const;
    expect(await found({ storeOutages: [outage] })).toEqual({});
    const stuck = { ...outage, stuck: ['balance@1 stays at 7, before 9'] };
    expect(Object.values(await found({ storeOutages: [stuck] })).flat()).toEqual([
      'while the store was down, balance@1 stays at 7, before 9',
    ]);
    expect(Object.values(await found({ storeOutages: [{ ...outage, appended: 0 }] })).flat()).toEqual([
      'while the store was down, nothing was appended',
    ]);
    const behind = { ...outage, behind: ['sales@1 stays at 7, before 9'] };
    expect(Object.values(await found({ storeOutages: [behind] })).flat()).toEqual([
      'after the store was down, sales@1 stays at 7, before 9',
    ]);
  });

  test('appends that stood still because another stream was held', async () => {
    const held = { streamId: 'account-9', heldMs: 3_000, others: 400, longestPauseMs: 300 };
    expect(await found({ heldStreams: [held] })).toEqual({});
    const stoodStill = { ...held, others: 2, longestPauseMs: 2_900 };
    expect(Object.values(await found({ heldStreams: [held, stoodStill] })).flat()).toEqual([
      'while account-9 was held for 3000 ms, 2 appends to others were acknowledged, and none for 2900 ms',
    ]);
  });

  test('a unique value with two owners', async () => {
    const [first] = evidence.events;
    if (!first) throw new Error('there are events');
    const claimed = { ...first, family: 'claim', payload: { append: 0, part: 0, value: 'ada' } };
    expect(Object.values(await found({ events: [...evidence.events, claimed, claimed] })).flat()).toContain(
      "'ada' has 2 owners",
    );
  });

  test('a client who was told that a value is taken, which nobody else has', async () => {
    const [first] = evidence.events;
    if (!first) throw new Error('there are events');
    const refused = (append: number): Answer => ({
      client: 'client 1',
      asked: { kind: 'claim', append, value: 'ada' },
      demanded: undefined,
      askedAt: 1_000,
      toldAt: 1_001,
      response: {
        data: null,
        codes: ['COMMAND_REJECTED'],
        message: `'value' is already taken.`,
        position: undefined,
        held: 0,
      },
    });
    const lie = "client 1 was told that 'ada' is taken, and nobody else has it: 'value' is already taken.";
    const lies = async (changed: Partial<Evidence>) =>
      Object.values(await found(changed))
        .flat()
        .filter((text) => text.includes('is taken'));
    expect(await found({ answers: [refused(7)] })).toEqual({ [oneOwner]: [lie] });
    const events = [...evidence.events, { ...first, family: 'claim', payload: { append: 7, part: 0, value: 'ada' } }];
    expect(await lies({ events, answers: [refused(8)] })).toEqual([]);
    expect(await lies({ events, answers: [refused(7)] })).toEqual([lie]); // its own
    // Its owner may have been lost.
    const { entries, begin, cut, count } = evidence.ledger;
    const ledger = { entries, begin, cut, count, cuts: [{ from: 900, to: 1_100, head: 5n }] };
    expect(await lies({ answers: [refused(7)], ledger })).toEqual([]);
  });

  test('an answer that lacks an event and looks fresh, has it and is named as held, or is older than demanded', async () => {
    const fresh = { what: 'the row', lacksEvent: false, saysSo: false, isList: false, isOlder: false };
    const heldAnswers = [
      fresh,
      { ...fresh, lacksEvent: true, saysSo: true },
      { ...fresh, saysSo: true, isList: true }, // because of another row
    ];
    expect(await found({ trials: { ...noTrials(), heldAnswers } })).toEqual({});
    const wrong = [
      { ...fresh, lacksEvent: true },
      { ...fresh, lacksEvent: true, isList: true },
      { ...fresh, saysSo: true },
      { ...fresh, lacksEvent: true, saysSo: true, isOlder: true },
    ];
    expect(Object.values(await found({ trials: { ...noTrials(), heldAnswers: wrong } })).flat()).toEqual([
      'the row lacks its event and looks fresh',
      'the row lacks its event and looks fresh',
      'the row has its event and is named as held',
      'the row is older than its event',
    ]);
  });

  test('a slow event that cost its process what it owned', async () => {
    const slow = { slowMs: 3_000, owned: ['journal@1/0 in apart', 'balance@1/0 in default'], lost: [] };
    expect(await found({ trials: { ...noTrials(), slowEvents: [slow] } })).toEqual({});
    const lost = { ...slow, lost: ['balance@1/0 in default'] };
    expect(Object.values(await found({ trials: { ...noTrials(), slowEvents: [lost] } })).flat()).toEqual([
      'while an event took 3000 ms, its process lost balance@1/0 in default of journal@1/0 in apart, balance@1/0 in default',
    ]);
  });
});
