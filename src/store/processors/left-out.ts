import type { GlobalPosition } from '../../events/global-position.ts';
import { type Discarded, discardText } from '../../projections/fold/discarded.ts';
import { type FoldFailure, keyText, type RowKey } from '../../projections/projection/projection.ts';
import type { ProcessorUnit } from '../server/processor-unit.ts';
import { type Queryable, refoldTables, run, type TableRow } from '../statements/statement.ts';

/** A table of a version: the one in use, that of a rebuild, or a snapshot's copy. */
interface Table {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
}

/**
 * Records the events that a batch skips, and adds them to the version's counter. A rebuild's skips are counted when its table is adopted.
 */
export async function recordSkips(
  db: Queryable,
  { kind, name, version, partition }: ProcessorUnit,
  tableName: string,
  skipped: readonly FoldFailure[],
): Promise<void> {
  await db.query({
    name: 'record skips',
    text: `
      with skips as (
        insert into refold.skips (name, version, table_name, position, key, refused)
        select $1, $2, $3, position, key::jsonb, refused
        from unnest($6::bigint[], $7::text[], $8::boolean[]) as skip (position, key, refused)
        -- an event of which no key is known fails in each partition
        on conflict do nothing
        returning position
      )
      update refold.processors
      set events_skipped = events_skipped + (select count(distinct position) from skips)
      where $4 = 'processor' and name = $1 and version = $2 and partition = $5`,
    values: [
      name,
      version,
      tableName,
      kind,
      partition,
      skipped.map(({ event }) => event.position),
      skipped.map(({ key }) => key && keyText(key)),
      skipped.map(({ error }) => refusedParts.includes(String(error.fields.part))),
    ],
  });
}

// The values of `part` in an error that mean that the database refused the row. `key` and `evolve` fail again on every fold of the event.
const refusedParts = ['row', 'evolveSql'];

/** The number of events that a table has skipped, for use in another statement. */
export function countOfSkips(tableName: string) {
  return refoldTables
    .selectFrom('refold.skips')
    .select(({ fn }) => fn.count<bigint>('position').distinct().as('skips'))
    .where('table_name', '=', tableName);
}

/**
 * The positions of events that are missing in a row of the current table: dead letters, skipped events and discarded events. A recalled
 * event counts as missing until the table is rebuilt.
 */
export async function readLeftOut(
  db: Queryable,
  { name, version, tableName }: Table,
  key: RowKey,
  /** The positions of the row's events. */
  positions: readonly GlobalPosition[],
): Promise<ReadonlySet<bigint>> {
  const rows = await db.query<Pick<TableRow<'refold.skips'>, 'position'>>({
    name: 'read left out',
    text: `
      select position
      from refold.discards
      where name = $1 and version = $2 and key in ($4::jsonb, 'null')
      union
      select position
      from refold.dead_letters
      where table_name = $3 and (key = $4::jsonb or key is null)
      union
      select position
      from refold.skips
      where table_name = $3 and position = any ($5) and (key = $4::jsonb or key is null)`,
    values: [name, version, tableName, keyText(key), positions],
  });
  return new Set(rows.map(({ position }) => position));
}

/**
 * The events that are missing in a table's rows but that a fold of the log would apply, as {@link discardText} writes them: dead letters,
 * discarded events, and events that were skipped because the database refused them. Recalled events are not included: the next rebuild
 * folds them.
 */
export async function readAllLeftOut(db: Queryable, { name, version, tableName }: Table): Promise<Discarded> {
  const rows = await db.query<Pick<TableRow<'refold.skips'>, 'position' | 'key'>>({
    text: `
      select position, nullif(key, 'null') as key
      from refold.discards
      where name = $1 and version = $2 and recalled_at is null
      union all
      select position, key
      from refold.dead_letters
      where table_name = $3
      union all
      select position, key
      from refold.skips
      where table_name = $3 and refused`,
    values: [name, version, tableName],
  });
  return new Set(rows.map(({ position, key }) => discardText(position, key)));
}

/** A row that waits for a dead letter, by its key as `keyText` writes it. */
export interface BlockedSince {
  readonly key: string;
  /** Its first dead letter. Since then, no event is folded into it. */
  readonly since: GlobalPosition;
}

/** The rows of a table that wait for a dead letter. */
export async function readBlockedSince(db: Queryable, tableName: string): Promise<BlockedSince[]> {
  const rows = await run(
    db,
    refoldTables
      .selectFrom('refold.dead_letters')
      .select(['key', ({ fn }) => fn.min('position').as('since')])
      .where('table_name', '=', tableName)
      .where('key', 'is not', null)
      .groupBy('key')
      .$narrowType<{ key: RowKey }>(),
  );
  return rows.map(({ key, since }) => ({ key: keyText(key), since }));
}

/** The numbers of events that a table left out. */
export interface LeftOut {
  readonly letters: number;
  readonly skipped: number;
  /** Null if nothing was skipped. */
  readonly firstSkipped: GlobalPosition | null;
}

/**
 * The events that a table left out but another table did not. Events that an operator discarded are not counted. A dead letter that only
 * waits counts together with the failed one that it waits behind. If the other table also has that failed one, the waiting letter is not
 * counted, because it is folded as soon as the table is adopted.
 */
export async function countNewlyLeftOut(db: Queryable, tableName: string, other: Table): Promise<LeftOut> {
  const isNew = (one: string) => `
    table_name = $1
    and not exists (select from refold.dead_letters as known where known.table_name = $2 and known.position = ${one}.position)
    and not exists (select from refold.skips as known where known.table_name = $2 and known.position = ${one}.position)
    and not exists (
      select from refold.discards as discard
      where discard.name = $3
        and discard.version = $4
        and discard.position = ${one}.position
        and discard.recalled_at is null
    )`;
  const [found] = await db.query<LeftOut>({
    text: `
      with fresh as (
        select letter.key, letter.position, letter.error is not null as failed
        from refold.dead_letters as letter
        where ${isNew('letter')}
      ), causes as (
        select key, min(position) as position
        from fresh
        where failed
        group by key
      ), letters as (
        select count(*)::integer as letters
        from fresh
        join causes on causes.key is not distinct from fresh.key and causes.position <= fresh.position
      ), skipped as (
        select count(distinct position)::integer as skipped, min(position) as "firstSkipped"
        from refold.skips as skip
        where ${isNew('skip')}
      )
      select letters, skipped, "firstSkipped"
      from letters
      cross join skipped`,
    values: [tableName, other.tableName, other.name, other.version],
  });
  return found ?? { letters: 0, skipped: 0, firstSkipped: null };
}

/** Copies the records of left-out events to a copy of the table. */
export async function copyLeftOut(tx: Queryable, from: string, to: string): Promise<void> {
  await tx.query({
    text: `
      with skipped as (
        insert into refold.skips (name, version, table_name, position, key, refused)
        select name, version, $2, position, key, refused
        from refold.skips
        where table_name = $1
      )
      insert into refold.dead_letters (name, version, table_name, key, position, event_type, stream_id, error, attempts, at)
      select name, version, $2, key, position, event_type, stream_id, error, attempts, at
      from refold.dead_letters
      where table_name = $1
      order by id`,
    values: [from, to],
  });
}

/** Deletes the records of left-out events of a table that is no longer used. */
export async function forgetLeftOut(db: Queryable, tableName: string): Promise<void> {
  await run(
    db,
    refoldTables
      .with('skipped', (forget) => forget.deleteFrom('refold.skips').where('table_name', '=', tableName))
      .deleteFrom('refold.dead_letters')
      .where('table_name', '=', tableName),
  );
}
