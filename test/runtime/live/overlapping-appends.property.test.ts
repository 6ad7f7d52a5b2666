import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineProjection, type Projection } from '../../../src/index.ts';
import type { ChangeCursor } from '../../../src/projections/queries/change-cursor.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import type { ChangeFeedUpdate } from '../../../src/schema/contract/change-feed.ts';
import type { LiveListUpdate, LiveRow } from '../../../src/schema/contract/operation-context.ts';
import { effort } from '../../support/effort.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import { createInlineSetting, creditOf, type InlineSetting, open, untilLive } from '../../support/inline-setting.ts';
import { account, balanceTable, balanceV1, inPartitions } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';
import { pull } from './live-setting.ts';

const balance = inPartitions(balanceV1, 3);
const inlineV2 = defineProjection({
  name: 'inline_balance',
  version: 2,
  events: account,
  mode: 'inline',
  activation: 'manual',
  table: balanceTable,
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, event) => ({ owner: event.payload.owner, amount: '0', movements: 0 }),
    Credited: (row) => row && { ...row, movements: row.movements + 1 },
  },
});
const accounts = ['a', 'b', 'c', 'd', 'e'];
const columns = ['accountId', 'movements'];
const step = { actor: 'test', reason: 'test' };

let setting: InlineSetting;
/** Two processes with subscribers. The first one also maintains the versions. */
let processes: readonly Runtime[];

beforeAll(async () => {
  setting = await createInlineSetting();
  const projections = [balance, inlineBalance, inlineV2];
  const worker = await setting.start(projections);
  await untilLive(worker, inlineBalance, inlineV2);
  processes = [worker, await setting.start(projections, { maintain: false })];
  for (const id of accounts) await open(worker, id);
  for (const { versions } of processes) {
    await until(async () => {
      await versions.refresh();
      return [...versions.current().served.values()].every(({ active }) => active);
    });
  }
});
afterAll(() => setting.close());

/** An append whose transaction is open. */
interface Running {
  readonly account: string;
  readonly position: bigint;
  end(commit: boolean): Promise<void>;
}

async function begin({ db, log }: Runtime, account: string): Promise<Running> {
  const begun = Promise.withResolvers<bigint>();
  const ending = Promise.withResolvers<boolean>();
  const over = db.transaction(async (tx) => {
    begun.resolve((await log.append(creditOf(account), tx)).position);
    if (!(await ending.promise)) throw new Error('rolled back');
  });
  over.catch(begun.reject);
  return {
    account,
    position: await begun.promise,
    async end(commit) {
      ending.resolve(commit);
      await (commit ? over : expect(over).rejects.toThrow('rolled back'));
    },
  };
}

async function furthestPartition({ name, version }: Projection): Promise<bigint> {
  const [{ db }] = processes as [Runtime];
  const text = 'select max(checkpoint) as checkpoint from refold.processors where name = $1 and version = $2';
  const [found] = await db.query<{ checkpoint: bigint }>({ text, values: [name, version] });
  return found?.checkpoint ?? expect.unreachable();
}

type Client = ReturnType<typeof createClient>;

/** A client of a feed that keeps what it is sent, through lost connections. */
function createClient(projection: Projection, snapshot: boolean, running: ReadonlySet<Running>) {
  const problems: string[] = [];
  const changed = new Map<string, bigint>();
  const isOrdered = projection.partitions === 1;
  /** What is at or below it was readable at the first message, or is in its snapshot. */
  let from: bigint | undefined;
  let cursor: ChangeCursor | null = null;
  let feed: AsyncIterableIterator<ChangeFeedUpdate> | undefined;
  let listening = Promise.resolve();

  async function apply({ reset, changes, cursor: at, position }: ChangeFeedUpdate): Promise<void> {
    if (isOrdered && !reset && position < (cursor?.position ?? 0n))
      problems.push(`${position} after ${cursor?.position}`);
    if (reset) {
      changed.clear();
      // What is committed later must not hide below the cursor.
      for (const append of running) {
        if (at && append.position <= at.position) problems.push(`${append.position} runs below ${at.position}`);
      }
      // The cursor is that of the partition that is behind the others. The rows of a snapshot have what those have folded; without one, it is sent.
      if (at) from = isOrdered || !snapshot ? at.position : await furthestPartition(projection);
      else from = undefined;
    }
    for (const { key, position: of } of reset ? [] : changes) {
      const account = String(key[0]);
      const before = changed.get(account) ?? -1n;
      if (isOrdered && of <= before) problems.push(`${account} of ${of} came after ${before}`);
      if (of > before) changed.set(account, of);
    }
    cursor = at ?? cursor;
  }

  return {
    problems,
    hasBegun: () => from !== undefined,
    /** The last cursor since it began. */
    reached: () => (from === undefined ? -1n : (cursor?.position ?? -1n)),
    missed: (committed: readonly Pick<Running, 'account' | 'position'>[]) =>
      committed.filter(({ account, position }) => position > (from ?? 0n) && (changed.get(account) ?? -1n) < position),
    async connect({ live }: Runtime) {
      await listening;
      const messages = live.changes(projection, { where: null, columns, snapshot, since: cursor }, { after: null });
      feed = messages;
      listening = (async () => {
        for await (const message of messages) if (feed === messages) await apply(message);
      })();
      listening.catch((error: unknown) => problems.push(String(error)));
    },
    async cut() {
      const messages = feed;
      feed = undefined;
      await messages?.return?.();
      await listening;
    },
  };
}

const steps = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constant('begin' as const), account: fc.nat({ max: 4 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant('end' as const),
      which: fc.nat(),
      commit: fc.integer({ min: 0, max: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      what: fc.constant('feed' as const),
      process: fc.nat({ max: 1 }),
      projection: fc.constantFrom(inlineBalance, inlineBalance, balance),
      snapshot: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ what: fc.constant('resume' as const), which: fc.nat(), process: fc.nat({ max: 1 }) }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('poll' as const) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('rebuild' as const, 'switch' as const) }) },
);

type Step = typeof steps extends fc.Arbitrary<infer S> ? S : never;

async function operate(what: 'rebuild' | 'switch'): Promise<void> {
  const [{ db, lifecycle, status }] = processes as [Runtime];
  const isNewer = (await status()).some(
    (one) => one.name === 'inline_balance' && one.version === 2 && one.state === 'active',
  );
  const done =
    what === 'rebuild'
      ? requestRebuild(db, inlineBalance, 'read_models', step)
      : isNewer
        ? lifecycle.rollback('inline_balance', step)
        : lifecycle.activate('inline_balance', 2, step);
  await done.catch((error: { code?: string }) => {
    if (error.code !== 'INVALID_TRANSITION') throw error; // a rebuild is in progress
  });
}

test('a feed resumes where it was while appends leave its inline version, also if the first of them commits last', async () => {
  const [{ db, live, log }] = processes as [Runtime];
  const feed = (since: ChangeCursor | null) =>
    live.changes(inlineBalance, { where: null, columns, snapshot: false, since }, { after: null });
  /** Runs statements in a transaction that stays open. */
  const hold = async (...texts: string[]) => {
    const held = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const over = db.transaction(async (tx) => {
      for (const text of texts) await tx.query({ text });
      held.resolve();
      await release.promise;
    });
    over.catch(held.reject);
    await held.promise;
    return async () => {
      release.resolve();
      await over;
    };
  };
  const begun = await pull(feed(null));
  // It keeps the version from ending its leave.
  const folding = await hold(
    `select pg_advisory_xact_lock_shared(lock_key) from refold.inline_versions where name = '${inlineBalance.name}' and version = 1`,
  );
  // It can't fold, has no position yet, and waits.
  const stranger = await hold(`select refold.pass_inline('{account}')`);
  await setting.database.administer(`select nextval('refold.events_position_seq')`); // of an append that was rolled back
  const { position } = await log.append(creditOf('c'));
  const { cursor } = await until(async () => {
    const messages = feed(null);
    const message = await pull(messages);
    await messages.return?.();
    return message.position > begun.position && message;
  });
  await stranger();

  const resumed = feed(cursor);
  const first = pull(resumed);
  const other = feed(null);
  await pull(other); // the poll after the resume
  await folding();
  let last = await first;
  expect(last).toMatchObject({ reset: false });
  while (last.position < position) last = await pull(resumed);
  for (const one of [resumed, other]) await one.return?.();
  await untilLive(processes[0] as Runtime, inlineBalance, inlineV2);
});

test('a feed that begins while an append is running gets the changes that were committed before it', async () => {
  const [{ live, log }] = processes as [Runtime];
  // A subscriber that has been served these changes already.
  const row = live.row(inlineBalance, ['b'], columns, { after: null });
  const { row: before } = await pull(row);
  const running = await begin(processes[0] as Runtime, 'a');
  const { position } = await log.append(creditOf('b'));
  const feed = live.changes(inlineBalance, { where: null, columns, snapshot: false, since: null }, { after: null });
  const first = await pull(feed);
  expect(first.position).toBeLessThan(running.position);
  await running.end(true);
  const { position: last } = await log.append(creditOf('c'));
  const sent: bigint[] = [];
  while (sent.at(-1) !== last) sent.push(...(await pull(feed)).changes.map((change) => change.position));
  expect(sent).toEqual([running.position, position, last]);
  const after = await pull(row);
  expect([before?.movements, after.row?.movements]).toEqual([0, 1]);
  expect(after.position).toBeGreaterThanOrEqual(position);
  await feed.return?.();
  await row.return?.();
});

test('a change is readable at the first cursor of a feed, or it is sent: in two processes, under overlapping appends, through rebuilds and switches', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 8, maxLength: 30 }), async (taken) => {
      const running = new Set<Running>();
      const clients: Client[] = [];
      const states = processes.map(follow);
      try {
        const { last, committed } = await play(taken, running, clients);
        // A partition may be ahead of the cursor. When the others catch up, a position alone is not sent at once.
        const hasAll = (client: Client) =>
          client.reached() >= last.position || (client.hasBegun() && client.missed([...committed, last]).length === 0);
        await until(() => clients.every((client) => client.problems.length > 0 || hasAll(client)));
        expect(clients.flatMap((client) => [...client.problems, ...client.missed(committed)])).toEqual([]);
        const expected = await currentRows();
        await until(() => states.every(({ knows }) => knows(expected)));
      } finally {
        for (const append of running) await append.end(false);
        for (const one of [...clients, ...states]) await one.cut();
      }
    }),
    { numRuns: effort(40, 10) },
  );
});

async function play(taken: readonly Step[], running: Set<Running>, clients: Client[]) {
  const [worker] = processes as [Runtime];
  const committed: Running[] = [];
  const finish = async (append: Running, commit: boolean) => {
    running.delete(append);
    await append.end(commit);
    if (commit) committed.push(append);
  };
  for (const one of taken) {
    switch (one.what) {
      case 'begin': {
        const id = accounts[one.account] as string;
        if (![...running].some((append) => append.account === id)) running.add(await begin(worker, id));
        break;
      }
      case 'end': {
        const append = [...running][one.which % Math.max(1, running.size)];
        if (append) await finish(append, one.commit > 0);
        break;
      }
      case 'feed': {
        const client = createClient(one.projection, one.snapshot, running);
        clients.push(client);
        await client.connect(processes[one.process] as Runtime);
        break;
      }
      case 'resume': {
        const client = clients[one.which % Math.max(1, clients.length)];
        await client?.cut();
        await client?.connect(processes[one.process] as Runtime);
        break;
      }
      case 'poll':
        // Long enough for a follower to see what is committed now.
        await currentRows();
        break;
      default:
        await operate(one.what);
    }
  }
  for (const append of running) await finish(append, true);
  const { position } = await worker.log.append(creditOf('a'));
  return { last: { account: 'a', position }, committed };
}

type Movements = { readonly accountId: string; readonly movements: number };

function currentRows(): Promise<Movements[]> {
  const [{ db }] = processes as [Runtime];
  const text = 'select account_id as "accountId", movements from read_models.inline_balance order by 1';
  return db.query<Movements>({ text });
}

/** Follows a row and the list of all rows. */
function follow({ live }: Runtime) {
  const rows = live.row(inlineBalance, ['a'], columns, { after: null });
  const query = { where: null, orderBy: [], first: 10, columns };
  const lists = live.list(inlineBalance, query, { after: null });
  const copy = new Map<unknown, unknown>();
  let state: LiveRow | undefined;
  const reading = [
    (async () => {
      for await (const message of rows) state = message;
    })(),
    (async () => {
      for await (const message of lists) applyList(copy, message);
    })(),
  ];
  return {
    knows: (expected: readonly Movements[]) =>
      state?.row?.movements === expected[0]?.movements &&
      expected.every(({ accountId, movements }) => copy.get(accountId) === movements),
    async cut() {
      for (const messages of [rows, lists]) await messages.return?.();
      await Promise.all(reading);
    },
  };
}

function applyList(copy: Map<unknown, unknown>, { snapshot, entered, changed, left }: LiveListUpdate): void {
  if (snapshot) copy.clear();
  for (const row of [...(snapshot ?? []), ...entered, ...changed]) copy.set(row.accountId, row.movements);
  for (const key of left) copy.delete(key[0]);
}
