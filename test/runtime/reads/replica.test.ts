import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { RefoldError } from '../../../src/errors.ts';
import { createReplica, type Replica } from '../../../src/runtime/reads/replica.ts';
import type { Database } from '../../../src/store/postgres/database.ts';
import type { Queryable, Statement } from '../../../src/store/statements/statement.ts';
import { active, versionMap } from '../../schema/in-memory-services.ts';
import { balanceV1, openingsV1 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

let replica: Replica | undefined;
afterEach(() => replica?.close());

const tables = 'balance@1 balance_v1\nbalance@2 balance_v2';
const primaryPlace = { system: '7', database: '16384', timeline: 2, at: '1000', lost: false };
const known = [{ position: '10', anchor: '10.a1' }];
const replicaState = { ...primaryPlace, known, standby: true, tables };

interface Servers {
  readonly state?: object;
  readonly place?: object;
  /** What the database of the log responds, if it is another one. */
  readonly log?: () => object;
  readonly maxLag?: number;
}

/** Servers whose responses a test may change between two polls. */
function serversOf(store: string, { state = {}, place = {}, log, maxLag = 500 }: Servers) {
  const responses = { state: { ...replicaState, ...state }, place: { ...primaryPlace, ...place } };
  const asked: Statement[] = [];
  let looks = 0;
  const said: string[] = [];
  const answering = (row: () => object, onAsked = (_: Statement) => {}) => ({
    async query<Row extends object>(statement: Statement) {
      onAsked(statement);
      return [row() as Row]; // what the statements of the poll select
    },
  });
  const elsewhere = log && {
    log: answering(log, (statement) => void asked.push(statement)),
    storesOf: () => [],
    others: () => [],
  };
  const primary: Queryable = { ...answering(() => responses.place), elsewhere };
  const watch = {
    ...answering(
      () => responses.state,
      () => void looks++,
    ),
    close: async () => {},
  } as unknown as Database; // nothing else of it is used
  const logger = pino({ level: 'info' }, { write: (line: string) => void said.push(JSON.parse(line).msg) });
  const opened = createReplica({ store, primary, db: watch, watch, maxLag, logger });
  replica = opened;
  return {
    responses,
    asked,
    said,
    replica: opened,
    /** Waits until both servers have been polled this often again. */
    async polled(times = 3): Promise<Replica> {
      const before = looks;
      await until(() => looks >= before + times);
      return opened;
    },
  };
}

const has = () => ({ lost: false });

describe.each([
  ['of the database of the log', 'default', {}],
  ['of a read store apart from the log', 'analytics', { log: has }],
])('a replica %s', (_, store, servers) => {
  const inStore = Object.freeze({ ...balanceV1, store });
  const served = versionMap([active(inStore)]);
  const start = (more: Servers = {}) => serversOf(store, { ...servers, ...more });

  test('serves reads if it has replayed the primary’s position', async () => {
    const { accepts } = start().replica;
    await until(() => accepts(served));
  });

  test.each([
    ['was promoted', { standby: false, at: null }],
    ['belongs to another server', { system: '8' }],
    ['is another database of the server', { database: '16385' }],
    ['follows another timeline', { timeline: 3 }],
    ['has not replayed enough', { at: '999' }],
    ['has replayed what the primary does not have', { at: '1001' }],
    ['does not know the version, or not as complete', { tables: null }],
    ['has the version in another table', { tables: 'balance@1 balance_v1_g2\nbalance@2 balance_v1' }],
  ])('serves none if it %s', async (_, state) => {
    expect((await start({ state }).polled()).accepts(served)).toBe(false);
  });

  test('is not asked for versions of other stores', async () => {
    const { accepts } = start().replica;
    const elsewhere = Object.freeze({ ...openingsV1, store: 'another' });
    await until(() => accepts(versionMap([active(inStore), active(elsewhere)])));
    expect(accepts(versionMap([active(inStore), active({ ...elsewhere, store })]))).toBe(false);
  });

  test('that stands still is not used when the primary, restored to an older state, has passed it', async () => {
    const servers = start({ place: { at: '900' }, maxLag: 2500 });
    const { accepts } = await servers.polled(2);
    expect(accepts(served)).toBe(false);
    expect(servers.said).toEqual([
      expect.stringContaining('it has replayed more than the primary has written: another history'),
    ]);
    servers.responses.place = { ...primaryPlace, at: '1100' };
    await servers.polled(2);
    expect(accepts(served)).toBe(false);
    servers.responses.state = { ...replicaState, at: '1100' };
    await until(() => accepts(served));
    expect(servers.said.at(-1)).toMatch(/is read from again$/);
  });

  test('that fails a read is avoided, unless the read would fail on the primary as well', async () => {
    // Long enough for no machine to be too slow for it, so there is a second between two polls.
    const { accepts, blame } = start({ maxLag: 600_000 }).replica;
    await until(() => accepts(served));
    const failure = (sqlState: string) => new RefoldError('DATABASE_ERROR', 'failed', { sqlState });
    expect(blame(failure('57014'))).toBe(false); // it took too long
    expect(blame(new RefoldError('BAD_USER_INPUT', 'no'))).toBe(false);
    expect(accepts(served)).toBe(true);
    expect(blame(failure('40001'))).toBe(true); // it conflicts with the replay
    expect(accepts(served)).toBe(false);
    await until(() => accepts(served));
  });
});

test('a replica with another last event than the log is not used', async () => {
  const { replica, said, polled } = serversOf('default', { place: { lost: true } });
  await polled();
  expect(replica.accepts(versionMap([active(balanceV1)]))).toBe(false);
  expect(said).toEqual([
    'the replica is not read from, the primary answers: it has events that the primary does not have: another history',
  ]);
});

describe('a store apart from the log', () => {
  const served = versionMap([active(Object.freeze({ ...balanceV1, store: 'analytics' }))]);
  const away = () => {
    throw new RefoldError('DATABASE_UNAVAILABLE', 'nothing listens there');
  };

  test('has no replica with rows of events that the log does not have', async () => {
    const { replica, said, polled } = serversOf('analytics', { log: () => ({ lost: true }) });
    await polled();
    expect(replica.accepts(served)).toBe(false);
    expect(said).toEqual([
      "the replica of the read store 'analytics' is not read from, the primary answers: it has rows of events that the log does not have: another history",
    ]);
  });

  test('asks the log once about each checkpoint of its replica, and again when history may have changed', async () => {
    const { replica, responses, asked, polled } = serversOf('analytics', { log: has });
    await polled(5);
    expect(asked.map(({ values }) => values)).toEqual([[[10n], ['10.a1']]]);
    responses.state = { ...replicaState, known: [...known, { position: '12', anchor: '12.b2' }] };
    await polled(5);
    expect(asked.map(({ values }) => values?.[0])).toEqual([[10n], [12n]]);
    await until(() => replica.accepts(served));
    replica.forget();
    expect(replica.accepts(served)).toBe(false);
    await until(() => replica.accepts(served));
    expect(asked.map(({ values }) => values?.[0])).toEqual([[10n], [12n], [10n, 12n]]);
  });

  test('does not use a replica because of a check that began before history may have changed', async () => {
    let isChanging = true;
    const { replica, polled } = serversOf('analytics', {
      log() {
        if (isChanging) replica.forget();
        return { lost: false };
      },
    });
    await polled(4);
    expect(replica.accepts(served)).toBe(false);
    isChanging = false;
    await until(() => replica.accepts(served));
  });

  test('keeps its replica while the log is away, but takes none that the log has not seen', async () => {
    let log = has;
    const { replica, said, responses, polled } = serversOf('analytics', { log: () => log() });
    await until(() => replica.accepts(served));
    log = away;
    responses.state = { ...replicaState, known: [{ position: '11', anchor: '11.c3' }] };
    await polled(5);
    await until(() => replica.accepts(served));
    replica.forget();
    await polled();
    expect(replica.accepts(served)).toBe(false);
    expect(said.at(-1)).toContain('the log does not respond, and may not have the events of its rows');
    log = has;
    await until(() => replica.accepts(served));
  });
});
