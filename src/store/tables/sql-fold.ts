import { invalidDeclaration, RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { storedFilter } from '../../events/event-names.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { textLimits } from '../../projections/columns/text-limits.ts';
import { type EventFilter, keyText, type Projection } from '../../projections/projection/projection.ts';
import type { MergeRule, SqlFold } from '../../projections/projection/sql-fold.ts';
import { countReadable, type SqlBatch } from '../processors/readable-batch.ts';
import { quoted } from '../statements/identifiers.ts';
import type { Queryable } from '../statements/statement.ts';
import { guarded } from './value-guards.ts';

export interface MergedRows {
  readonly events: number;
  readonly rows: number;
  /** The key texts as in {@link keyText}; empty if keys were not requested. */
  readonly upserted: readonly string[];
  readonly deleted: readonly string[];
}

/** The set-based fold of a projection into one table. */
export interface SetMerge {
  /** Event types whose stored payloads may have an older version. They are read, upcast and sent with the batch. */
  readonly upcast: readonly EventFilter[];
  /**
   * Merges the batch's rows into the table with one statement. Without keys and in a transaction, it may use more memory.
   *
   * @throws RefoldError at the first event that can't be read: `PAYLOAD_VERSION_UNKNOWN`, or `EVOLVE_FAILED` if an upcaster failed. Nothing
   *   is merged.
   */
  run(db: Queryable, batch: SqlBatch, options: { readonly keys: boolean }): Promise<MergedRows>;
  /**
   * Makes PostgreSQL check the SQL against the table, which must exist.
   *
   * @throws RefoldError `INVALID_DECLARATION` that names the projection. The transaction is then aborted.
   */
  check(db: Queryable): Promise<void>;
}

/** @param table the quoted name of the table with its schema */
export function createSetMerge(projection: Projection, fold: SqlFold, table: string): SetMerge {
  const { id, codec, columns, keyColumns, families, filter } = projection;
  const names = Object.keys(columns);
  const limits = textLimits(columns, keyColumns);
  const fitting = (name: string, value: string) => guarded(columns[name], value, name, limits[name]);
  const sql = (name: string) => quoted(String(projection.sqlNames[name]));
  const list = (columnNames: readonly string[], of = '') => columnNames.map((name) => `${of}${sql(name)}`).join(', ');
  const hasUpcasters = (family: string, type: string) =>
    (families.find(({ name }) => name === family)?.upcasters[type]?.length ?? 0) > 0;
  const ofTypes = (upcast: boolean) =>
    filter
      .map(({ family, types }) => ({ family, types: types.filter((type) => hasUpcasters(family, type) === upcast) }))
      .filter(({ types }) => types.length > 0);
  const stored = storedFilter(families, ofTypes(false));
  const upcast = ofTypes(true);
  const inBatch = `position > $1 and position <= $2 and ${matching(stored)}`;

  const batch = [
    ...(stored.length > 0 ? [`select ${batchColumns(families)} from refold.events where ${inBatch}`] : []),
    ...(upcast.length > 0
      ? [
          `select ${batchColumns([])} from json_to_recordset($3) as upcast (${batchTypes}) where position > $1 and position <= $2`,
        ]
      : []),
  ].join(' union all ');
  const rows = `
    batch as (${batch}),
    -- the declared select over the batch
    rows as (
      ${fold.rows}
    )`;
  const others = names.filter((name) => !keyColumns.includes(name));
  const mergedValue = (name: string) =>
    others.includes(name) ? merged(sql(name), fold.merge[name], sql(keyColumns[0] as string)) : `new.${sql(name)}`; // a table has a key
  const sameKey = (one: string, other: string) =>
    keyColumns.map((name) => `${one}.${sql(name)} = ${other}.${sql(name)}`).join(' and ');
  const assignments = others.map((name) => `${sql(name)} = excluded.${sql(name)}`).join(', ');
  // If nothing can be removed, 'judged' is referenced once, and PostgreSQL does not materialize it.
  const deleted =
    fold.remove === null
      ? `select ${list(keyColumns)} from upserted where false`
      : `
      delete from ${table} as gone using judged where "refold removes" and ${sameKey('gone', 'judged')}
      returning ${list(keyColumns, 'gone.')}`;
  const merge = `
    with ${rows},
    -- the rows after the merge
    judged as (
      select
        ${names.map((name) => `${fitting(name, `merged.${sql(name)}`)} as ${sql(name)}`).join(', ')},
        ${fold.remove === null ? 'false' : `coalesce((\n${fold.remove}\n), false)`} as "refold removes"
      from rows as new
      left join ${table} as old on ${sameKey('old', 'new')}
      cross join lateral (select ${names.map((name) => `${mergedValue(name)} as ${sql(name)}`).join(', ')}) as merged
    ),
    upserted as (
      insert into ${table} (${list(names)})
      select ${list(names)} from judged where not "refold removes"
      on conflict (${list(keyColumns)}) do ${assignments === '' ? 'nothing' : `update set ${assignments}`}
      returning ${list(keyColumns)}
    ),
    deleted as (${deleted})`;
  const counts = `${merge}
    select (select count(*) from upserted) + (select count(*) from deleted) as rows`;
  // Joins with the table once. The insert above searches for each row again and materializes what it writes.
  const newValue = (name: string) => fitting(name, `new.${sql(name)}`);
  const updates = others.map((name) => `${sql(name)} = ${fitting(name, `(${mergedValue(name)})`)}`);
  const inOneJoin = `
    with ${rows},
    written as (
      merge into ${table} as old
      using rows as new on ${sameKey('old', 'new')}
      when matched then ${updates.length > 0 ? `update set ${updates.join(', ')}` : 'do nothing'}
      when not matched then
        insert (${list(names)})
        values (${names.map(newValue).join(', ')})
      returning true
    )
    select count(*) as rows from written`;
  // Whether a row is removed is decided on the merged row.
  const countsFor = (serverVersion: number) =>
    fold.remove === null && serverVersion >= mergeReturns ? inOneJoin : counts;
  const keys = `${merge}
    select true as "refold upserted", ${list(keyColumns)} from upserted
    union all
    select false, ${list(keyColumns)} from deleted`;
  const values = ({ after, upTo, upcast: sent }: SqlBatch) => [
    after,
    upTo,
    ...(upcast.length > 0 ? [JSON.stringify(sent.map(batchRow))] : []),
  ];

  return {
    upcast,
    async run(db, part, options) {
      // Reads the range a second time. Materializing the batch to check and count it costs more, see docs/performance.md.
      const events = await countReadable(db, projection, part, stored.length > 0 ? inBatch : null);
      // Not prepared: a plan for the actual bounds saves more than planning costs.
      const found = await db.query<Record<string, unknown>>({
        text: options.keys ? keys : countsFor(await prepareLarge(db)),
        values: values(part),
      });
      if (!options.keys) return { events, rows: Number(found[0]?.rows ?? 0), upserted: [], deleted: [] };
      const changed = (upserted: boolean) =>
        found
          .filter((row) => row['refold upserted'] === upserted)
          .map((row) =>
            keyText(keyColumns.map((name) => codec.decodeValue(name, row[String(projection.sqlNames[name])]))),
          );
      const [upserted, deleted] = [changed(true), changed(false)];
      return { events, rows: upserted.length + deleted.length, upserted, deleted };
    },
    async check(db) {
      const nothing = values({ after: 0n as GlobalPosition, upTo: 0n as GlobalPosition, upcast: [] }); // positions begin at 1
      try {
        const [made] = await db.query<{ rows: bigint }>({
          text: `with ${rows} select count(*) as rows from rows`,
          values: nothing,
        });
        if (made?.rows !== 0n)
          throw invalidDeclaration(
            id,
            `evolveSql.rows returns ${made?.rows} rows for a batch without events; it must return none. Group by the key, or add 'having count(*) > 0'.`,
          );
        const plans: unknown[] = [];
        for (const text of new Set([keys, countsFor(await prepareLarge(db))]))
          plans.push(await db.query({ text: `explain (verbose, format json) ${text}`, values: nothing }));
        const foreign = tablesOf(plans).find((name) => name !== 'refold.events' && name !== table.replaceAll('"', ''));
        if (foreign !== undefined)
          throw invalidDeclaration(
            id,
            `evolveSql reads ${foreign}; it may read only 'batch', because anything else may differ when the log is folded again.`,
          );
      } catch (cause) {
        if (!(cause instanceof RefoldError) || cause.code !== 'DATABASE_ERROR') throw cause;
        const problem = `PostgreSQL refuses evolveSql: ${cause.message}. 'rows' returns ${list(names).replaceAll('"', '')}; 'merge' and 'remove' refer to them as old.… and new.….`;
        throw new RefoldError('INVALID_DECLARATION', `${id}: ${problem}`, { subject: id }, { cause });
      }
    },
  };
}

// PostgreSQL 17, as `server_version_num`: from there on, `merge` supports `returning`.
const mergeReturns = 170_000;
// Enough to group a batch of a hundred thousand events in memory instead of sorting it on disk. A higher server setting is kept.
const largeBatchMemory = '32MB';

/** Raises `work_mem` for the transaction. Returns the server's version as `server_version_num`. */
async function prepareLarge(db: Queryable): Promise<number> {
  const [server] = await db.query<{ version: number }>({
    text: `
      select
        current_setting('server_version_num')::int as version,
        set_config(
          'work_mem',
          case
            when pg_size_bytes(current_setting('work_mem')) < pg_size_bytes($1) then $1
            else current_setting('work_mem')
          end,
          true
        )`,
    values: [largeBatchMemory],
  });
  return server?.version ?? 0;
}

/** The columns of `batch`, with the declared names of these families and their types. */
function batchColumns(renamed: readonly EventFamily[]): string {
  const families = renamed.flatMap(({ name, storedName }) =>
    name === storedName ? [] : [`when family = '${storedName}' then '${name}'`],
  );
  const types = renamed.flatMap(({ storedName, declaredTypes }) =>
    Object.entries(declaredTypes).flatMap(([stored, type]) =>
      type === stored ? [] : [`when family = '${storedName}' and type = '${stored}' then '${type}'`],
    ),
  );
  const declared = (column: string, cases: readonly string[]) =>
    cases.length === 0 ? column : `case ${cases.join(' ')} else ${column} end as ${column}`;
  return `position, id, ${declared('family', families)}, stream_id, stream_position, ${declared('type', types)}, payload, metadata, recorded_at`;
}

const batchTypes =
  'position bigint, id uuid, family text, stream_id text, stream_position bigint, type text, payload jsonb, metadata jsonb, recorded_at timestamptz';

function batchRow(event: RecordedEvent): Record<string, unknown> {
  return {
    position: event.position.toString(),
    id: event.id,
    family: event.family,
    stream_id: event.streamId,
    stream_position: event.streamPosition,
    type: event.type,
    payload: event.payload,
    metadata: event.metadata,
    recorded_at: event.recordedAt,
  };
}

/**
 * Names contain only letters, digits and _, checked when the events are declared. As literals they let the planner estimate how many events
 * match.
 */
function matching(filter: readonly EventFilter[]): string {
  const families = filter.map(
    ({ family, types }) => `family = '${family}' and type in (${types.map((type) => `'${type}'`).join(', ')})`,
  );
  return families.length === 1 ? families.join() : `(${families.map((one) => `(${one})`).join(' or ')})`;
}

function merged(column: string, rule: MergeRule | undefined, key: string): string {
  const [old, new_] = [`old.${column}`, `new.${column}`];
  switch (rule) {
    case 'add':
      return `coalesce(${old} + ${new_}, ${new_}, ${old})`;
    case 'min':
      return `least(${old}, ${new_})`;
    case 'max':
      return `greatest(${old}, ${new_})`;
    case 'first':
      return `coalesce(${old}, ${new_})`;
    case 'last':
      return `coalesce(${new_}, ${old})`;
    case 'replace':
    case undefined:
      return new_;
    default:
      return `case when old.${key} is null then ${new_} else (\n${rule.sql}\n) end`;
  }
}

/** The tables that a plan reads, as `schema.table`. */
function tablesOf(plan: unknown): string[] {
  if (Array.isArray(plan)) return plan.flatMap(tablesOf);
  if (typeof plan !== 'object' || plan === null) return [];
  const node = plan as Record<string, unknown>; // a JSON object
  const own = typeof node['Relation Name'] === 'string' ? [`${node.Schema}.${node['Relation Name']}`] : [];
  return [...own, ...Object.values(node).flatMap(tablesOf)];
}
