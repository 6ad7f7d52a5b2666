import type { ResponseQuery } from '../../projections/queries/response-query.ts';
import { isLargeAnswer } from '../../store/postgres/database-errors.ts';
import { createAnswerStatements, type LookUp } from '../../store/queries/compiled-responses.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { createQueryBatcher } from './query-batcher.ts';

interface Waiting {
  readonly query: ResponseQuery;
  readonly key: readonly unknown[];
  resolve(answer: string | Promise<string>): void;
  reject(error: unknown): void;
}

// The largest array of one statement, as for look-ups by resolvers.
const maxKeys = 1000;

/**
 * Creates a function that executes each query as one statement. Single-row look-ups of one turn of the event loop share a statement, even across
 * requests, and so do a few other queries of the same form. Nothing is cached: each query sees the database at the time of its statement.
 */
export function createCompiledReads(
  db: Queryable,
  readSchema: string,
  connections: number,
): (query: ResponseQuery) => Promise<string> {
  const statements = createAnswerStatements(readSchema);
  const joined = createQueryBatcher(
    (asked) => orApart(asked, (some) => statements.answerTogether(db, some)),
    connections,
  );
  const groups = new Map<string, { readonly lookUp: LookUp; readonly waiting: Waiting[] }>();

  function join(query: ResponseQuery, lookUp: LookUp): Promise<string> {
    return new Promise((resolve, reject) => {
      const group = groups.get(lookUp.group) ?? { lookUp, waiting: [] };
      group.waiting.push({ query, key: lookUp.key, resolve, reject });
      if (group.waiting.length === 1) groups.set(lookUp.group, group);
      if (groups.size === 1 && group.waiting.length === 1) setImmediate(sendAll);
      if (group.waiting.length === maxKeys) {
        groups.delete(lookUp.group);
        send(group.lookUp, group.waiting);
      }
    });
  }

  function sendAll(): void {
    const ready = [...groups.values()];
    groups.clear();
    for (const { lookUp, waiting } of ready) send(lookUp, waiting);
  }

  function send(lookUp: LookUp, waiting: readonly Waiting[]): void {
    orApart(waiting, (some) => answersOf(lookUp, some)).then(
      (answers) => {
        for (const [index, { resolve }] of waiting.entries()) resolve(answers[index] as Answer); // one for each
      },
      (error) => {
        for (const { reject } of waiting) reject(error);
      },
    );
  }

  async function answersOf(lookUp: LookUp, waiting: readonly Waiting[]): Promise<readonly string[]> {
    const [first] = waiting;
    // Bind a single key as a value. For an array of one, the planner's custom plan always looks cheaper than a generic plan, so it plans every time.
    if (first && waiting.length === 1) return [await statements.answer(db, first.query)];
    const keys = waiting.map(({ key }) => key);
    const rows = await lookUp.read(db, keys);
    return rows.map((row, index) => `{${JSON.stringify(waiting[index]?.query.shape.roots[0]?.[0])}:${row ?? 'null'}}`);
  }

  return async (query) => {
    const lookUp = statements.lookUp(query);
    if (lookUp) return join(query, lookUp);
    const asked = statements.batchable(query);
    return asked ? joined(asked) : statements.answer(db, query);
  };
}

type Answer = string | Promise<string>;

/** Answers together. If that is too large, answers each apart, so that only those are refused that are too large themselves. */
async function orApart<T>(
  asked: readonly T[],
  send: (some: readonly T[]) => Promise<readonly string[]>,
): Promise<readonly Answer[]> {
  try {
    return await send(asked);
  } catch (error) {
    if (!isLargeAnswer(error) || asked.length === 1) throw error;
    return asked.map(async (one) => (await send([one]))[0] as string); // one for each
  }
}
