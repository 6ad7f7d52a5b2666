import { LRUCache } from 'lru-cache';
import type { ResponseQuery, ResponseRead, ResponseShape } from '../../projections/queries/response-query.ts';
import { preparedName, runPrepared } from '../statements/prepared.ts';
import type { Queryable, Statement } from '../statements/statement.ts';
import {
  aggregateWithPlaceholders,
  filterWithPlaceholders,
  Placeholder,
  type Placeholders,
  pageWithPlaceholders,
  placeholderFor,
} from '../tables/placeholders.ts';
import { encoded } from '../tables/row-values.ts';
import { encodedMeasure } from './aggregate-rows.ts';
import { answersSql, batchedSql, responseSql } from './response-sql.ts';

/** Builds whole responses in PostgreSQL, with one statement each. The statement is compiled once per form. */
export interface AnswerStatements {
  /** The JSON of all root fields. @throws RefoldError `BAD_USER_INPUT` for an impossible value. */
  answer(db: Queryable, query: ResponseQuery): Promise<string>;
  /** Prepares a query for {@link answerTogether}; undefined if it needs a statement of its own. */
  batchable(query: ResponseQuery): BatchableQuery | undefined;
  /** The responses to queries of one group, from one statement. @throws RefoldError like {@link answer} */
  answerTogether(db: Queryable, asked: readonly BatchableQuery[]): Promise<readonly string[]>;
  /**
   * For a query that looks up exactly one row: the group of queries that can share its statement. Undefined if it cannot be shared.
   */
  lookUp(query: ResponseQuery): LookUp | undefined;
}

/** A query of a group. The statements of a group differ only in their values. */
export interface BatchableQuery {
  /** The same object for all queries that differ only in values. */
  readonly group: { readonly id: number };
  readonly query: ResponseQuery;
  readonly values: readonly unknown[];
}

export interface LookUp {
  /** Equal for all lookups that can share a statement. */
  readonly group: string;
  /** The key's values, in the form in which they are bound. */
  readonly key: readonly unknown[];
  /** Reads the rows of several keys at once, each as JSON; undefined for a key without a row. */
  read(db: Queryable, keys: readonly (readonly unknown[])[]): Promise<readonly (string | undefined)[]>;
}

/** A statement that was compiled with parameters. */
interface Compiled {
  readonly id: number;
  readonly text: string;
  readonly parameters: readonly unknown[];
}

// Per document: its conditions, orders and page sizes vary with the variables.
const maxForms = 50;
// Each number of queries needs a statement of its own, and every connection plans it six times. This does not pay for
// statements that take long to plan.
const maxReadsTogether = 4;
const maxValuesTogether = 50;

export function createAnswerStatements(readSchema: string): AnswerStatements {
  const forms = new WeakMap<ResponseShape, LRUCache<string, Compiled>>();
  let made = 0;

  function compiled(
    shape: ResponseShape,
    form: string,
    compile: () => { sql: string; parameters: readonly unknown[] },
  ) {
    const known = forms.get(shape) ?? new LRUCache<string, Compiled>({ max: maxForms });
    forms.set(shape, known);
    const before = known.get(form);
    if (before) return before;
    const { sql, parameters } = compile();
    const statement = { id: ++made, text: sql, parameters };
    known.set(form, statement);
    return statement;
  }

  const single = (shape: ResponseShape, placeholders: Placeholders, reads: readonly ResponseRead[]) =>
    compiled(shape, placeholders.shape, () => responseSql(readSchema, { shape, reads }));

  return {
    async answer(db, query) {
      const placeholders: Placeholders = { values: [], shape: '' };
      const reads = withPlaceholders(query.reads, placeholders);
      const rows = reads
        ? await db.query<{ answer: string }>(bound(single(query.shape, placeholders, reads), placeholders.values))
        : await runPrepared(db, responseSql(readSchema, query));
      return answerIn(rows[0]?.answer);
    },
    batchable(query) {
      if (query.reads.length === 0 || query.reads.length > maxReadsTogether) return undefined;
      const placeholders: Placeholders = { values: [], shape: '' };
      const reads = withPlaceholders(query.reads, placeholders);
      if (!reads || placeholders.values.length > maxValuesTogether) return undefined;
      return { group: single(query.shape, placeholders, reads), query, values: placeholders.values };
    },
    async answerTogether(db, asked) {
      const [first] = asked as readonly [BatchableQuery]; // at least one
      const { shape } = first.query;
      const statement = compiled(shape, `${asked.length} of ${first.group.id}`, () => {
        const placeholders: Placeholders = { values: [], shape: '' };
        const all = asked.map(({ query }) => withPlaceholders(query.reads, placeholders) ?? []); // each was accepted by askedOf
        return answersSql(readSchema, shape, all);
      });
      const values = asked.flatMap((one) => one.values);
      const [row] = await db.query<Record<string, string>>(bound(statement, values));
      return asked.map((_, index) => answerIn(row?.[`answer_${index}`]));
    },
    lookUp({ shape, reads }) {
      const [root, ...others] = shape.roots;
      const part = root?.[1];
      if (part?.kind !== 'row' || others.length > 0) return undefined;
      const read = reads[part.read];
      if (read?.kind !== 'row') return undefined;
      const { projection, by } = read;
      const placeholders: Placeholders = { values: [], shape: 'joined ' };
      const key = read.key.map((value, index) => encoded(projection, by[index] as string, value)); // same length
      // Parameters for the keys come first. Their values are set when the statement runs.
      const keyed = { ...read, key: key.map(() => placeholderFor(placeholders, undefined)) };
      const all = withPlaceholders(
        reads.map((other) => (other === read ? keyed : other)),
        placeholders,
        keyed,
      );
      if (!all) return undefined;
      const statement = compiled(shape, placeholders.shape, () => batchedSql(readSchema, part.row, all, part.read));
      const others_ = placeholders.values.slice(key.length);
      return {
        group: others_.length === 0 ? `${statement.id}` : `${statement.id} ${JSON.stringify(others_)}`,
        key,
        async read(on, keys) {
          const values = [...key.map((_, index) => keys.map((one) => one[index])), ...others_];
          const rows = await on.query<{ place: bigint; answer: string }>(bound(statement, values));
          const answers = new Array<string | undefined>(keys.length).fill(undefined);
          for (const { place, answer } of rows) answers[Number(place) - 1] = answer;
          return answers;
        },
      };
    },
  };
}

function answerIn(value: unknown): string {
  if (typeof value !== 'string') throw new Error('PostgreSQL returned no response.');
  return value;
}

/** Replaces values by parameters. Undefined if the statement's text depends on a value. `keyed` has its parameters already. */
function withPlaceholders(
  reads: readonly ResponseRead[],
  placeholders: Placeholders,
  keyed?: ResponseRead,
): ResponseRead[] | undefined {
  const result: ResponseRead[] = [];
  for (const read of reads) {
    placeholders.shape += '#';
    if (read.kind === 'page') {
      const query = pageWithPlaceholders(read.projection, read.query, placeholders, encoded);
      if (!query) return undefined;
      result.push({ ...read, query });
      continue;
    }
    if (read.kind === 'aggregate') {
      const query = aggregateWithPlaceholders(read.projection, read.query, placeholders, encoded, encodedMeasure);
      if (!query) return undefined;
      result.push({ ...read, query });
      continue;
    }
    const where = filterWithPlaceholders(read.projection, read.where, placeholders, encoded);
    if (where === undefined) return undefined;
    if (read.kind === 'one' || read === keyed) result.push({ ...read, where });
    else {
      const key = read.key.map(
        (value, index) => placeholderFor(placeholders, encoded(read.projection, read.by[index] as string, value)), // same length
      );
      result.push({ ...read, where, key });
    }
  }
  return result;
}

function bound({ text, parameters }: Compiled, values: readonly unknown[]): Statement {
  const name = preparedName(text);
  return {
    text,
    values: parameters.map((parameter) => (parameter instanceof Placeholder ? values[parameter.index] : parameter)),
    ...(name === undefined ? {} : { name }),
  };
}
