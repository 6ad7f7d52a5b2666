import { decimal, defineProjection, t } from '../../src/index.ts';
import { account } from './sample-domain.ts';

const table = {
  accountId: t.text().primaryKey(),
  balance: t.decimal(20, 2).index(),
  movements: t.integer(),
  largest: t.decimal(20, 2).nullable(),
  lastAmount: t.decimal(20, 2),
  firstAt: t.timestamptz(),
  lastAt: t.timestamptz(),
};

/** The movements of each account, in each form: sums, a count, extremes, and values of the first and the last event. */
export const totalsByEvolve = defineProjection({
  name: 'account_totals',
  version: 1,
  events: account,
  table,
  key: (event) => event.streamId,
  evolve: {
    Credited: (row, { payload, recordedAt }) => {
      const amount = decimal(payload.amount);
      return {
        balance: amount.plus(row?.balance ?? 0),
        movements: (row?.movements ?? 0) + 1,
        largest: row?.largest?.gt(amount) ? row.largest : amount,
        lastAmount: amount,
        firstAt: row?.firstAt ?? recordedAt,
        lastAt: recordedAt,
      };
    },
    Debited: (row, { payload, recordedAt }) => ({
      balance: decimal(row?.balance ?? 0).minus(payload.amount),
      movements: (row?.movements ?? 0) + 1,
      largest: row?.largest ?? null,
      lastAmount: decimal(payload.amount).times(-1),
      firstAt: row?.firstAt ?? recordedAt,
      lastAt: recordedAt,
    }),
    Closed: () => null,
  },
});

// Events before the last Closed of a batch belong to no row any more.
const closing = `
  select *, max(position) filter (where type = 'Closed') over (partition by stream_id) as closed_at
  from batch`;
const moved = `
  select
    *,
    case when type <> 'Closed' and position > coalesce(closed_at, 0)
      then case type when 'Credited' then 1 else -1 end * (payload->>'amount')::numeric
    end as amount
  from closing`;
const rows = `
  select
    stream_id as account_id,
    sum(amount) as balance,
    count(amount) as movements,
    max(amount) filter (where type = 'Credited') as largest,
    (array_agg(amount order by position desc))[1] as last_amount,
    (array_agg(recorded_at order by position) filter (where amount is not null))[1] as first_at,
    (array_agg(recorded_at order by position desc))[1] as last_at,
    max(closed_at) as closed_at
  from moved
  group by stream_id`;

const bySql = {
  name: 'account_totals',
  events: account,
  table,
  key: (event: { readonly streamId: string }) => event.streamId,
} as const;
const eventsAndMerge = {
  events: ['Credited', 'Debited', 'Closed'],
  merge: {
    balance: { sql: 'case when new.closed_at is null then old.balance + new.balance else new.balance end' },
    movements: { sql: 'case when new.closed_at is null then old.movements + new.movements else new.movements end' },
    largest: { sql: 'case when new.closed_at is null then greatest(old.largest, new.largest) else new.largest end' },
    lastAmount: 'replace',
    firstAt: { sql: 'case when new.closed_at is null then old.first_at else new.first_at end' },
    lastAt: 'replace',
  },
  remove: 'new.movements = 0',
} as const;

/** In one select. */
export const totalsBySql = defineProjection({
  ...bySql,
  version: 2,
  evolveSql: { ...eventsAndMerge, rows: `with closing as (${closing}), moved as (${moved}) ${rows}` },
});

/** In several statements. */
export const totalsByStages = defineProjection({
  ...bySql,
  version: 3,
  evolveSql: { ...eventsAndMerge, stages: { closing, moved }, rows },
});
