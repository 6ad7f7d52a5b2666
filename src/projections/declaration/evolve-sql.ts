import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { EventFamily, EventTypeOf } from '../../events/event-family.ts';
import { isNumeric, isOrdered } from '../columns/aggregate-columns.ts';
import type { Column, Columns, KeyColumnOf } from '../columns/column.ts';
import type { EventFilter } from '../projection/projection.ts';
import { refuseUnknownKeys } from '../projection/refuse-unknown.ts';
import type { MergeRule, SqlFold } from '../projection/sql-fold.ts';
import { handledTypes } from './evolve-handlers.ts';

/** The set-based form of a projection: SQL over a batch of events. One statement merges the result into the table. */
export interface EvolveSql<F extends EventFamily, C extends Columns> {
  /** The event types that it handles. `batch` contains only these. */
  readonly events: readonly EventTypeOf<F>[];
  /**
   * Statements that prepare a complex batch, in order: each is a `select` from `batch` and the stages before it, and later ones read its result
   * under its name. PostgreSQL computes each of them once for a batch.
   *
   * @default none
   * @example
   * stages: {
   *   part: `select stream_id, (payload->>'amount')::numeric as amount from batch`,
   *   total: 'select stream_id, sum(amount) as amount from part group by stream_id',
   * },
   */
  readonly stages?: Readonly<Record<string, string>>;
  /**
   * One `select` from `batch` or a stage that returns each key at most once. It returns each of the table's columns under its SQL name (`lastAt` →
   * `last_at`), and may return others that `merge` or `remove` use.
   *
   * `batch` has the columns `position`, `id`, `family`, `stream_id`, `stream_position`, `type`, `payload` (jsonb, upcast), `metadata`
   * (jsonb) and `recorded_at`. It has no order. If a result depends on the order, write the order, as in `(array_agg(payload->>'owner'
   * order by position desc))[1]`. Any split of the log into batches must lead to the same table, so the SQL must read only `batch` and no
   * clock.
   */
  readonly rows: string;
  /** How each column that is not in the key is merged. */
  readonly merge: { readonly [N in Exclude<keyof C & string, KeyColumnOf<C>>]: MergeRule };
  /**
   * A condition over `old`, `new` and `merged` (the row that would be written). If it is true, the row is removed, or not created.
   * @default never
   */
  readonly remove?: string;
}

/** @throws RefoldError `INVALID_DECLARATION` that names what to change. */
export function checkEvolveSql(
  subject: string,
  families: readonly EventFamily[],
  table: Columns,
  keyColumns: readonly string[],
  given: EvolveSql<EventFamily, Columns>,
): { readonly fold: SqlFold; readonly filter: readonly EventFilter[] } {
  const refuse = (problem: string) => invalidDeclaration(subject, `evolveSql${problem}`);
  refuseUnknownKeys(subject, 'evolveSql', given, ['events', 'stages', 'rows', 'merge', 'remove']);
  if (!Array.isArray(given.events) || given.events.length === 0)
    throw refuse('.events names no event type; name those that the batch contains.');
  const filter = handledTypes(subject, families, given.events, (type) => `evolveSql.events names '${type}'`);
  checkText('rows', given.rows);
  if (!/^\s*(select|with)\b/i.test(given.rows)) throw refuse(`.rows is a select from 'batch'.`);
  if (given.remove !== undefined) checkText('remove', given.remove);
  const stages = Object.entries(given.stages ?? {}).map(([name, sql]) => ({ name, sql }));
  for (const [index, { name, sql }] of stages.entries()) checkStage(name, sql, stages.slice(index + 1));
  const merged = Object.keys(table).filter((name) => !keyColumns.includes(name));
  const rules = given.merge as Readonly<Record<string, MergeRule>>; // its keys are checked here
  for (const name of Object.keys(rules)) {
    if (keyColumns.includes(name)) throw refuse(`.merge names '${name}', a key column; the key finds the row.`);
    if (!merged.includes(name))
      throw refuse(`.merge names '${name}', which the table does not declare.${closest(name, merged)}`);
  }
  for (const name of merged) checkRule(name, table[name] as Column, rules[name]); // `merged` holds names of columns
  for (const [name, { flags }] of Object.entries(table)) {
    if (flags.hasDefault)
      throw refuse(
        ` must return every value, but column '${name}' has a default. Write coalesce(…) in the SQL instead.`,
      );
  }
  return {
    fold: Object.freeze({
      stages: Object.freeze(stages),
      rows: given.rows,
      merge: Object.freeze({ ...rules }),
      remove: given.remove ?? null,
    }),
    filter,
  };

  function checkRule(name: string, column: Column, rule: MergeRule | undefined): void {
    if (rule === undefined)
      throw refuse(
        `.merge leaves out '${name}'; say how the batch's value is merged into the table's, such as 'add' or 'last'.`,
      );
    if (typeof rule === 'object') {
      checkText(`merge.${name}.sql`, rule.sql);
      return;
    }
    if (!words.includes(rule))
      throw refuse(`.merge.${name} is '${rule}'; expected ${words.map((word) => `'${word}'`).join(', ')} or { sql }.`);
    if (rule === 'add' && !isNumeric(column))
      throw refuse(`.merge.${name} adds, but the column is ${column.type.kind}.`);
    if ((rule === 'min' || rule === 'max') && !isOrdered(column))
      throw refuse(`.merge.${name} compares, but the column is ${column.type.kind}.`);
  }

  function checkStage(name: string, sql: unknown, later: readonly { readonly sql: string }[]): void {
    if (!/^[a-z][a-z0-9_]{0,62}$/.test(name) || name === 'batch')
      throw refuse(`.stages has '${name}'; a stage is named in snake_case, and not 'batch'.`);
    checkText(`stages.${name}`, sql);
    if (!/^\s*(select|with)\b/i.test(String(sql))) throw refuse(`.stages.${name} is a select.`);
    // PostgreSQL does not compute, and so does not check, what nothing reads.
    const reads = new RegExp(`\\b${name}\\b`, 'i');
    if (![...later.map((stage) => stage.sql), given.rows].some((text) => reads.test(text)))
      throw refuse(`.stages.${name} is read by no later stage and not by 'rows'.`);
  }

  function checkText(part: string, text: unknown): void {
    if (typeof text !== 'string' || text.trim() === '') throw refuse(`.${part} is a text of SQL.`);
    if (/\$\d/.test(text)) throw refuse(`.${part} holds a parameter such as $1; a declaration's SQL takes none.`);
  }
}

const words = ['add', 'min', 'max', 'first', 'last', 'replace'];
