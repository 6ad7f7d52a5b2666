import { z } from 'zod';
import { decimal, defineEvents, defineProjection, type Projection, type RowOf, t } from '../src/index.ts';
import { claim, claims } from './claims.ts';
import { takeTime } from './slowness.ts';

// Each event carries the number of its append, and its index in the append.
const mark = { append: z.int(), part: z.int() };

export const account = defineEvents('account', {
  Opened: z.object({ ...mark, owner: z.string() }),
  /** `poison` names the projections' row that fails on it. */
  Credited: z.object({
    ...mark,
    amount: z.string(),
    poison: z.enum(['account', 'group']).optional(),
    /** How long its row of the journal takes, in milliseconds. */
    slowMs: z.int().optional(),
  }),
  Debited: z.object({ ...mark, amount: z.string() }),
  Closed: z.object(mark),
});

export const order = defineEvents('order', {
  Placed: z.object({
    ...mark,
    customer: z.string(),
    lines: z.array(z.object({ product: z.string(), quantity: z.int() })),
  }),
  /** `note` makes it large. */
  Cancelled: z.object({ ...mark, note: z.string().optional() }),
});

/** The workflow creates these from orders; no other writer appends them. */
export const parcel = defineEvents('parcel', {
  Dispatched: z.object({ order: z.string(), append: z.int(), number: z.int() }),
});

export const families = [account, order, parcel, claim] as const;

interface Marked {
  readonly append: number;
  readonly part: number;
}

/** A checksum over the events in order: a missing, doubled or misplaced event changes it. */
function chained(chain: number | undefined, { append, part }: Marked): number {
  return (Math.imul(chain ?? 17, 31) + append * 7 + part) | 0;
}

/** One row per stream; some are hot; rows come and go. The next version weighs the amount differently. */
export function balance(version: number) {
  return defineProjection({
    name: 'balance',
    version,
    events: account,
    table: {
      accountId: t.text().primaryKey(),
      owner: t.text().index(),
      amount: t.decimal(20, 2).index(),
      movements: t.integer(),
      weighted: t.decimal(20, 2),
      chain: t.integer(),
    },
    key: (event) => event.streamId,
    evolve: {
      Opened: (_, { payload }) => ({
        owner: payload.owner,
        amount: '0',
        movements: 0,
        weighted: '0',
        chain: chained(undefined, payload),
      }),
      Credited: (row, { payload }) =>
        row && {
          ...row,
          amount: row.amount.plus(payload.amount),
          movements: row.movements + 1,
          weighted: row.weighted.plus(decimal(payload.amount).times(version)),
          chain: chained(row.chain, payload),
        },
      Debited: (row, { payload }) =>
        row && {
          ...row,
          amount: row.amount.minus(payload.amount),
          movements: row.movements + 1,
          chain: chained(row.chain, payload),
        },
      Closed: () => null,
    },
  });
}

/** Several rows per event, of several owners, and one row for all events: the hottest possible. */
export const sales = defineProjection({
  name: 'sales',
  version: 1,
  events: order,
  partitions: 2,
  table: { what: t.text().primaryKey(), orders: t.integer(), units: t.integer().index(), chain: t.integer() },
  key: (event) =>
    event.type === 'Placed'
      ? ['*', `customer ${event.payload.customer}`, ...event.payload.lines.map(({ product }) => `product ${product}`)]
      : [],
  evolve: {
    Placed: (row, { payload }, what) => ({
      orders: (row?.orders ?? 0) + 1,
      units: payload.lines
        .filter(({ product }) => !what.startsWith('product') || what === `product ${product}`)
        .reduce((sum, { quantity }) => sum + quantity, row?.units ?? 0),
      chain: chained(row?.chain, payload),
    }),
  },
});

/** One row per event, of two families, by several owners. */
export const journal = defineProjection({
  name: 'journal',
  version: 1,
  events: [account, order],
  partitions: 3,
  table: {
    streamId: t.text().primaryKey(),
    streamPosition: t.integer().primaryKey(),
    position: t.bigint().index(),
    append: t.integer(),
    part: t.integer(),
  },
  key: ({ streamId, streamPosition }) => ({ streamId, streamPosition }),
  evolve: {
    Opened: (_, event) => entry(event),
    Credited: (_, event) => {
      takeTime(event);
      return entry(event);
    },
    Debited: (_, event) => entry(event),
    Closed: (_, event) => entry(event),
    Placed: (_, event) => entry(event),
    Cancelled: (_, event) => entry(event),
  },
});

function entry({ position, payload }: { readonly position: bigint; readonly payload: Marked }) {
  return { position, append: payload.append, part: payload.part };
}

/** Written with the append itself, while all appending processes support it. */
export const standing = defineProjection({
  name: 'standing',
  version: 1,
  mode: 'inline',
  events: account,
  table: { accountId: t.text().primaryKey(), amount: t.decimal(20, 2), chain: t.integer() },
  key: (event) => event.streamId,
  evolve: {
    Opened: (row, { payload }) => row ?? { amount: '0', chain: chained(undefined, payload) },
    Credited: (row, { payload }) =>
      row && { ...row, amount: row.amount.plus(payload.amount), chain: chained(row.chain, payload) },
    Debited: (row, { payload }) =>
      row && { ...row, amount: row.amount.minus(payload.amount), chain: chained(row.chain, payload) },
    Closed: () => null,
  },
});

const sums = {
  accountId: t.text().primaryKey(),
  moved: t.decimal(20, 2),
  movements: t.integer(),
  checksum: t.bigint(),
  firstAppend: t.integer(),
  lastAppend: t.integer().index(),
};

/** Folded in the database. */
export const totals = defineProjection({
  name: 'totals',
  version: 1,
  events: account,
  table: sums,
  key: (event) => event.streamId,
  evolveSql: {
    events: ['Credited', 'Debited'],
    rows: `
      select
        stream_id as account_id,
        sum((payload->>'amount')::numeric) as moved,
        count(*) as movements,
        sum((payload->>'append')::bigint * 7 + (payload->>'part')::bigint) as checksum,
        (array_agg((payload->>'append')::integer order by position))[1] as first_append,
        (array_agg((payload->>'append')::integer order by position desc))[1] as last_append
      from batch
      group by stream_id`,
    merge: { moved: 'add', movements: 'add', checksum: 'add', firstAppend: 'first', lastAppend: 'last' },
  },
});

const added = (row: RowOf<typeof sums> | null, payload: Marked & { readonly amount: string }) => ({
  moved: decimal(payload.amount).plus(row?.moved ?? 0),
  movements: (row?.movements ?? 0) + 1,
  checksum: (row?.checksum ?? 0n) + BigInt(payload.append * 7 + payload.part),
  firstAppend: row?.firstAppend ?? payload.append,
  lastAppend: payload.append,
});

/** The expected content of `totals`, folded event by event. */
const totalsOneByOne = defineProjection({
  name: 'totals',
  version: 1,
  events: account,
  table: sums,
  key: (event) => event.streamId,
  evolve: { Credited: (row, { payload }) => added(row, payload), Debited: (row, { payload }) => added(row, payload) },
});

/** The projection whose event-by-event fold is the expected content of another projection's table. */
export function foldOneByOne(projection: Projection): Projection {
  return projection.name === totals.name ? totalsOneByOne : projection;
}

/** Rows of accounts and of groups of accounts. They fail on poison unless the code is `mended` (fixed). */
function creditsWith(name: string, onError: 'skip' | 'dead-letter', mended: boolean): Projection {
  return defineProjection({
    name,
    version: 1,
    events: account,
    partitions: 2,
    table: { row: t.text().primaryKey(), credits: t.integer(), amount: t.decimal(20, 2), chain: t.integer() },
    key: ({ streamId }) => [streamId, `group ${streamId.slice(-1)}`],
    evolve: {
      Credited: (row, { payload }, key) => {
        const failsHere = payload.poison === (key.startsWith('group') ? 'group' : 'account');
        if (failsHere && !mended) throw new Error(`poison for the ${payload.poison}`);
        return {
          credits: (row?.credits ?? 0) + 1,
          amount: decimal(payload.amount).plus(row?.amount ?? 0),
          chain: chained(row?.chain, payload),
        };
      },
    },
    onError,
  });
}

/** Keeps the events on which it fails, and those that follow in the same row. */
export const credits = creditsWith('credits', 'dead-letter', false);
/** The same with fixed code, to retry dead letters with. */
export const mendedCredits = creditsWith('credits', 'dead-letter', true);
/** Skips the events on which it fails. */
export const soundCredits = creditsWith('sound_credits', 'skip', false);

const others = [sales, journal, standing, totals, credits, soundCredits];

/** The read models of which a deployment brings the next version. */
export const versioned: Readonly<Record<string, (version: number) => Projection>> = { balance, claims };

/** What a process declares: of the versioned read models the versions from `lowest` to `highest`, and all others. */
export function declared(lowest: number, highest: number): readonly Projection[] {
  const versions = Array.from({ length: highest - lowest + 1 }, (_, index) => lowest + index);
  return [...Object.values(versioned).flatMap((of) => versions.map(of)), ...others];
}

/** A declared version by its name. */
export function projectionOf(name: string, version: number): Projection {
  const found = versioned[name]?.(version) ?? others.find((projection) => projection.name === name);
  if (found) return found;
  throw new Error(`No projection is called '${name}'.`);
}
