import { textLimits } from '../../projections/columns/text-limits.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { MergeRule, SqlFold } from '../../projections/projection/sql-fold.ts';
import { quoted } from '../statements/identifiers.ts';
import { guarded } from './value-guards.ts';

/** The statements that merge the rows of a batch into a table. `rows` are the CTEs of the batch, of which the last is `rows`. */
export class MergeSql {
  readonly #projection: Projection;
  readonly #fold: SqlFold;
  readonly #table: string;
  readonly #limits: Readonly<Record<string, number>>;

  constructor(projection: Projection, fold: SqlFold, table: string) {
    this.#projection = projection;
    this.#fold = fold;
    this.#table = table;
    this.#limits = textLimits(projection.columns, projection.keyColumns);
  }

  /** The statement that merges the rows and returns their keys. */
  withKeys(rows: string): string {
    const keys = this.list(this.#projection.keyColumns);
    return `${this.#merge(rows)}
    select true as "refold upserted", ${keys} from upserted
    union all
    select false, ${keys} from deleted`;
  }

  /** The statement that merges the rows and counts them. */
  withCount(rows: string, serverVersion: number): string {
    // Whether a row is removed is decided on the merged row.
    if (this.#fold.remove === null && serverVersion >= mergeReturns) return this.#inOneJoin(rows);
    return `${this.#merge(rows)}
    select (select count(*) from upserted) + (select count(*) from deleted) as rows`;
  }

  #merge(rows: string): string {
    const { columns, keyColumns } = this.#projection;
    const names = Object.keys(columns);
    const { remove } = this.#fold;
    const assignments = this.#others.map((name) => `${this.#sql(name)} = excluded.${this.#sql(name)}`).join(', ');
    // If nothing can be removed, 'judged' is referenced once, and PostgreSQL does not materialize it.
    const deleted =
      remove === null
        ? `select ${this.list(keyColumns)} from upserted where false`
        : `
      delete from ${this.#table} as gone using judged where "refold removes" and ${this.#sameKey('gone', 'judged')}
      returning ${this.list(keyColumns, 'gone.')}`;
    return `
    with ${rows},
    -- the rows after the merge
    judged as (
      select
        ${names.map((name) => `${this.#fitting(name, `merged.${this.#sql(name)}`)} as ${this.#sql(name)}`).join(', ')},
        ${remove === null ? 'false' : `coalesce((\n${remove}\n), false)`} as "refold removes"
      from rows as new
      left join ${this.#table} as old on ${this.#sameKey('old', 'new')}
      cross join lateral (
        select ${names.map((name) => `${this.#mergedValue(name)} as ${this.#sql(name)}`).join(', ')}
      ) as merged
    ),
    upserted as (
      insert into ${this.#table} (${this.list(names)})
      select ${this.list(names)} from judged where not "refold removes"
      on conflict (${this.list(keyColumns)}) do ${assignments === '' ? 'nothing' : `update set ${assignments}`}
      returning ${this.list(keyColumns)}
    ),
    deleted as (${deleted})`;
  }

  /** Joins with the table once. The insert of {@link #merge} searches for each row again and materializes what it writes. */
  #inOneJoin(rows: string): string {
    const names = Object.keys(this.#projection.columns);
    const newValue = (name: string) => this.#fitting(name, `new.${this.#sql(name)}`);
    const updates = this.#others.map(
      (name) => `${this.#sql(name)} = ${this.#fitting(name, `(${this.#mergedValue(name)})`)}`,
    );
    return `
    with ${rows},
    written as (
      merge into ${this.#table} as old
      using rows as new on ${this.#sameKey('old', 'new')}
      when matched then ${updates.length > 0 ? `update set ${updates.join(', ')}` : 'do nothing'}
      when not matched then
        insert (${this.list(names)})
        values (${names.map(newValue).join(', ')})
      returning true
    )
    select count(*) as rows from written`;
  }

  /** The columns outside of the key. */
  get #others(): readonly string[] {
    const { columns, keyColumns } = this.#projection;
    return Object.keys(columns).filter((name) => !keyColumns.includes(name));
  }

  #sql(name: string): string {
    return quoted(String(this.#projection.sqlNames[name]));
  }

  list(names: readonly string[], of = ''): string {
    return names.map((name) => `${of}${this.#sql(name)}`).join(', ');
  }

  #sameKey(one: string, other: string): string {
    return this.#projection.keyColumns
      .map((name) => `${one}.${this.#sql(name)} = ${other}.${this.#sql(name)}`)
      .join(' and ');
  }

  #fitting(name: string, value: string): string {
    return guarded(this.#projection.columns[name], value, name, this.#limits[name]);
  }

  #mergedValue(name: string): string {
    const { keyColumns } = this.#projection;
    if (keyColumns.includes(name)) return `new.${this.#sql(name)}`;
    return merged(this.#sql(name), this.#fold.merge[name], this.#sql(keyColumns[0] as string)); // a table has a key
  }
}

// PostgreSQL 17, as `server_version_num`: from there on, `merge` supports `returning`.
const mergeReturns = 170_000;

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
