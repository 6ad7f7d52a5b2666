import { invalidDeclaration, RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { type EventFilter, keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import type { SqlFold } from '../../projections/projection/sql-fold.ts';
import { quoted } from '../statements/identifiers.ts';
import { logOf, type Queryable } from '../statements/statement.ts';
import { batchColumnNames, batchRow, batchSource } from './batch-sql.ts';
import { MergeSql } from './merge-sql.ts';
import { countReadable, type SqlBatch } from './readable-batch.ts';
import { chosenRows } from './row-choice.ts';

export interface MergedRows {
  readonly events: number;
  readonly rows: number;
  /** The key texts as in {@link keyText}; empty if keys were not requested. */
  readonly upserted: readonly string[];
  readonly deleted: readonly string[];
}

/** A row that an event by itself leads to. */
export interface LedTo {
  readonly position: GlobalPosition;
  readonly type: string;
  readonly streamId: string;
  readonly key: RowKey;
}

/** The set-based fold of a projection into one table. */
export interface SetMerge {
  /** Event types that are read, upcast and sent with the batch: their stored payloads may have an older version, or the log is elsewhere. */
  readonly upcast: readonly EventFilter[];
  /**
   * Merges the batch's rows into the table with one statement. Without keys and in a transaction, it may use more memory.
   *
   * @throws RefoldError at the first event that can't be read: `PAYLOAD_VERSION_UNKNOWN`, or `EVOLVE_FAILED` if an upcaster failed. Nothing
   *   is merged.
   */
  run(db: Queryable, batch: SqlBatch, options: { readonly keys: boolean }): Promise<MergedRows>;
  /** Evaluates `rows` for all columns, and merges nothing. */
  evaluate(db: Queryable, batch: SqlBatch): Promise<void>;
  /**
   * Evaluates the keys of `rows` for each event of the batch by itself. That takes several times as long as for all at once.
   *
   * @returns which of the chosen rows each event leads to, in log order
   * @throws RefoldError as {@link SetMerge.run}
   */
  rowsOfEach(db: Queryable, batch: SqlBatch): Promise<readonly LedTo[]>;
  /**
   * Makes PostgreSQL check the SQL against the table, which must exist.
   *
   * @throws RefoldError `INVALID_DECLARATION` that names the projection. The transaction is then aborted.
   */
  check(db: Queryable): Promise<void>;
}

/**
 * @param table the quoted name of the table with its schema
 * @param db its database. If that is not the database of the log, all events are sent with their batch
 */
export function createSetMerge(projection: Projection, fold: SqlFold, table: string, db: Queryable): SetMerge {
  return new DeclaredMerge(projection, fold, table, logOf(db) !== db);
}

class DeclaredMerge implements SetMerge {
  readonly upcast: readonly EventFilter[];
  readonly #projection: Projection;
  readonly #fold: SqlFold;
  readonly #table: string;
  readonly #sql: MergeSql;
  readonly #ships: boolean;
  readonly #inBatch: string | null;
  readonly #select: string;

  constructor(projection: Projection, fold: SqlFold, table: string, ships: boolean) {
    const { upcast, inBatch, select } = batchSource(projection, ships);
    this.#ships = ships;
    this.upcast = upcast;
    this.#inBatch = inBatch;
    this.#select = select;
    this.#projection = projection;
    this.#fold = fold;
    this.#table = table;
    this.#sql = new MergeSql(projection, fold, table);
  }

  async run(db: Queryable, batch: SqlBatch, options: { readonly keys: boolean }): Promise<MergedRows> {
    // Reads the range a second time. Materializing the batch to check and count it costs more, see bench/NOTES.md.
    const events = await countReadable(db, this.#projection, batch, this.#inBatch);
    const { rows, values } = this.#rows(batch);
    // Not prepared: a plan for the actual bounds saves more than planning costs.
    const found = await db.query<Record<string, unknown>>({
      text: options.keys ? this.#sql.withKeys(rows) : this.#sql.withCount(rows, await prepareLarge(db)),
      values,
    });
    if (!options.keys) return { events, rows: Number(found[0]?.rows ?? 0), upserted: [], deleted: [] };
    const changed = (upserted: boolean) =>
      found.filter((row) => row['refold upserted'] === upserted).map((row) => keyText(this.#keyOf(row)));
    const [upserted, deleted] = [changed(true), changed(false)];
    return { events, rows: upserted.length + deleted.length, upserted, deleted };
  }

  async evaluate(db: Queryable, batch: SqlBatch): Promise<void> {
    await countReadable(db, this.#projection, batch, this.#inBatch);
    const { rows, values } = this.#rows(batch);
    // Of columns that nobody reads, PostgreSQL computes nothing.
    await db.query({ text: `with ${rows} select count(rows::text) from rows`, values });
  }

  async rowsOfEach(db: Queryable, batch: SqlBatch): Promise<readonly LedTo[]> {
    await countReadable(db, this.#projection, batch, this.#inBatch);
    const found = await db.query<Record<string, unknown> & OfEvent>(this.#ofEach(batch));
    return found.map((row) => ({
      position: globalPosition(row['refold position']),
      type: row['refold type'],
      streamId: row['refold stream'],
      key: this.#keyOf(row),
    }));
  }

  async check(db: Queryable): Promise<void> {
    const { id, columns } = this.#projection;
    const nothing = { after: 0n as GlobalPosition, upTo: 0n as GlobalPosition, upcast: [] }; // positions begin at 1
    const { rows, values } = this.#rows(nothing);
    await this.#checkStages(db, values);
    try {
      const [made] = await db.query<{ rows: bigint }>({
        text: `with ${rows} select count(*) as rows from rows`,
        values,
      });
      if (made?.rows !== 0n)
        throw invalidDeclaration(
          id,
          `evolveSql.rows returns ${made?.rows} rows for a batch without events; it must return none. Group by the key, or add 'having count(*) > 0'.`,
        );
      const plans: unknown[] = [];
      for (const text of new Set([
        this.#sql.withKeys(rows),
        this.#sql.withCount(rows, await prepareLarge(db)),
        this.#ofEach(nothing).text,
      ]))
        plans.push(await db.query({ text: `explain (verbose, format json) ${text}`, values }));
      const foreign = tablesOf(plans).find(
        (name) => (this.#ships || name !== 'refold.events') && !isTable(db, name, this.#table.replaceAll('"', '')),
      );
      if (foreign !== undefined)
        throw invalidDeclaration(
          id,
          `evolveSql reads ${foreign}; it may read only 'batch', because anything else may differ when the log is folded again.`,
        );
    } catch (cause) {
      const names = this.#sql.list(Object.keys(columns)).replaceAll('"', '');
      const hint = `'rows' returns ${names}; 'merge' and 'remove' refer to them as old.… and new.….`;
      throw this.#refused('evolveSql', cause, hint);
    }
  }

  /** The CTEs of a batch and its chosen rows, and the values of the statement. */
  #rows(batch: SqlBatch): { rows: string; values: readonly unknown[] } {
    const { condition, values } = this.#chosen(batch, 'declared');
    const all = `
    batch as (${this.#select}),
    -- the declared select over the batch
    rows as (${condition === '' ? this.#declared : `select * from (${this.#declared}) as declared where ${condition}`})`;
    return { rows: all, values };
  }

  /** The batch of each event is that event. */
  #ofEach(batch: SqlBatch) {
    const { condition, values } = this.#chosen(batch, 'led_to');
    const text = `
      select
        event.position as "refold position",
        event.type as "refold type",
        event.stream_id as "refold stream",
        ${this.#sql.list(this.#projection.keyColumns, 'led_to.')}
      from (${this.#select}) as event
      cross join lateral (
        with batch as (select ${batchColumnNames.map((name) => `event.${name}`).join(', ')})
        select * from (${this.#declared}) as declared
      ) as led_to
      ${condition === '' ? '' : `where ${condition}`}
      order by event.position`;
    return { text, values };
  }

  #chosen({ after, upTo, upcast, choice = {} }: SqlBatch, rows: string) {
    const values = [after, upTo, ...(this.upcast.length > 0 ? [JSON.stringify(upcast.map(batchRow))] : [])];
    const chosen = chosenRows(this.#projection, rows, choice, values.length + 1);
    return { condition: chosen.condition, values: [...values, ...chosen.values] };
  }

  /** The declared select, with its stages. */
  get #declared(): string {
    const { stages, rows } = this.#fold;
    if (stages.length === 0) return `\n${rows}\n`;
    return `
      with ${this.#stages(stages.length)}
      select * from (\n${rows}\n) as result`;
  }

  /** The first stages as CTEs. Materialized: otherwise PostgreSQL computes one that is read once where it is read. */
  #stages(count: number): string {
    return this.#fold.stages
      .slice(0, count)
      .map(({ name, sql }) => `${quoted(name)} as materialized (\n${sql}\n)`)
      .join(', ');
  }

  /** @throws RefoldError `INVALID_DECLARATION` that names the first stage which PostgreSQL refuses */
  async #checkStages(db: Queryable, values: readonly unknown[]): Promise<void> {
    for (const [index, { name }] of this.#fold.stages.entries()) {
      const text = `explain with batch as (${this.#select}), ${this.#stages(index + 1)} select * from ${quoted(name)}`;
      await db.query({ text, values }).catch((cause) => {
        throw this.#refused(`evolveSql.stages.${name}`, cause, "It may read 'batch' and the stages before it.");
      });
    }
  }

  #refused(what: string, cause: unknown, hint: string): unknown {
    if (!(cause instanceof RefoldError) || cause.code !== 'DATABASE_ERROR') return cause;
    const { id } = this.#projection;
    const problem = `PostgreSQL refuses ${what}: ${cause.message}. ${hint}`;
    return new RefoldError('INVALID_DECLARATION', `${id}: ${problem}`, { subject: id }, { cause });
  }

  #keyOf(row: Readonly<Record<string, unknown>>): RowKey {
    const { keyColumns, codec, sqlNames } = this.#projection;
    return keyColumns.map((name) => codec.decodeValue(name, row[String(sqlNames[name])]));
  }
}

interface OfEvent {
  readonly 'refold position': bigint;
  readonly 'refold type': string;
  readonly 'refold stream': string;
}

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

/** The tables that a plan reads, as `schema.table`. */
/** A plan of a Citus cluster names the shard: the table with a number of at least six digits. */
function isTable(db: Queryable, name: string, table: string): boolean {
  if (name === table) return true;
  return db.elsewhere?.placement !== undefined && name.startsWith(table) && /^_\d{6,}$/.test(name.slice(table.length));
}

function tablesOf(plan: unknown): string[] {
  if (Array.isArray(plan)) return plan.flatMap(tablesOf);
  if (typeof plan !== 'object' || plan === null) return [];
  const node = plan as Record<string, unknown>; // a JSON object
  const own = typeof node['Relation Name'] === 'string' ? [`${node.Schema}.${node['Relation Name']}`] : [];
  return [...own, ...Object.values(node).flatMap(tablesOf)];
}
