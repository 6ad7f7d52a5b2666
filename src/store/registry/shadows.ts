import { sql } from 'kysely';
import type { GlobalPosition } from '../../events/global-position.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** Starts or restarts a comparison. Deletes the counts of an earlier one. */
export async function writeShadow(db: Queryable, name: string, version: number, oneOf: number): Promise<void> {
  await run(db, refoldTables.deleteFrom('refold.shadows').where('name', '=', name).where('version', '=', version));
  await run(db, refoldTables.insertInto('refold.shadows').values({ name, version, one_of: oneOf }));
}

/** Stops the comparison and keeps its results. Returns false if none was running. */
export async function endShadow(db: Queryable, name: string, version: number): Promise<boolean> {
  const ended = await run(
    db,
    refoldTables
      .updateTable('refold.shadows')
      .set({ stopped_at: sql`now()` })
      .where('name', '=', name)
      .where('version', '=', version)
      .where('stopped_at', 'is', null)
      .returning('name'),
  );
  return ended.length > 0;
}

export type ShadowOutcome = 'same' | 'different' | 'failed' | 'skipped';

/** A difference between the responses of two versions. */
export interface ShadowDifference {
  /** `cartSummaries.edges[].node.totalAmount`; empty if the operation as a whole differs. */
  readonly path: string;
  /** JSON, truncated if it is long. */
  readonly older: string;
  readonly newer: string;
}

export interface ShadowResult {
  readonly name: string;
  readonly version: number;
  /** The start of the comparison. A result of a comparison that was restarted since is not counted. */
  readonly startedAt: string;
  readonly outcome: ShadowOutcome;
  /** The operation's name, or its root fields. */
  readonly operation: string;
  /** The position that both versions had reached. */
  readonly position: GlobalPosition | null;
  readonly differences: readonly ShadowDifference[];
}

/** Counts the result of one comparison. Stores new examples while there is room. */
export async function addShadowResult(db: Queryable, result: ShadowResult, maxExamples: number): Promise<void> {
  const { name, version, outcome, operation, position, differences } = result;
  const columns = { same: 'same', different: 'different', failed: 'failed', skipped: 'skipped' } as const;
  const column = columns[outcome];
  await db.query({
    text: `
      with counted as (
        update refold.shadows
        set ${column} = ${column} + 1
        where name = $1 and version = $2 and started_at = $9 and stopped_at is null
        returning name, version
      ), kept as (
        select operation, path from refold.shadow_examples where name = $1 and version = $2
      )
      insert into refold.shadow_examples as example (name, version, operation, path, older, newer, position)
      select name, version, $3, given.path, given.older, given.newer, $4
      from counted
      cross join unnest($5::text[], $6::text[], $7::text[]) with ordinality as given (path, older, newer, number)
      where exists (select from kept where kept.operation = $3 and kept.path = given.path)
        or given.number <= $8 - (select count(*) from kept)
      on conflict (name, version, operation, path) do update
        set
          times = example.times + 1,
          older = excluded.older,
          newer = excluded.newer,
          position = excluded.position,
          seen_at = excluded.seen_at`,
    values: [
      name,
      version,
      operation,
      position,
      differences.map(({ path }) => path),
      differences.map(({ older }) => older),
      differences.map(({ newer }) => newer),
      maxExamples,
      result.startedAt,
    ],
  });
}

/** A difference between two versions, with the values of its last occurrence. */
export interface ShadowExample extends ShadowDifference {
  readonly operation: string;
  readonly times: number;
  readonly position: GlobalPosition | null;
  readonly seenAt: string;
}

/** The comparison of a ready version's responses with those of the active version. */
export interface Shadow {
  readonly name: string;
  readonly version: number;
  readonly oneOf: number;
  readonly startedAt: string;
  /** Null while it runs. */
  readonly stoppedAt: string | null;
  readonly same: number;
  readonly different: number;
  readonly failed: number;
  readonly skipped: number;
  /** The most frequent examples first. */
  readonly examples: readonly ShadowExample[];
}

/** Of one version, or of all. */
export async function readShadows(db: Queryable, name?: string, version?: number): Promise<readonly Shadow[]> {
  // One statement, because the counts and the examples must be of one moment.
  const rows = await run(
    db,
    refoldTables
      .selectFrom('refold.shadows as shadow')
      .leftJoin('refold.shadow_examples as example', (join) =>
        join.onRef('example.name', '=', 'shadow.name').onRef('example.version', '=', 'shadow.version'),
      )
      .select([
        'shadow.name',
        'shadow.version',
        'one_of as oneOf',
        'started_at as startedAt',
        'stopped_at as stoppedAt',
        'same',
        'different',
        'failed',
        'skipped',
        'operation',
        'path',
        'times',
        'older',
        'newer',
        'position',
        'seen_at as seenAt',
      ])
      .where(({ and, eb }) =>
        and([
          ...(name === undefined ? [] : [eb('shadow.name', '=', name)]),
          ...(version === undefined ? [] : [eb('shadow.version', '=', version)]),
        ]),
      )
      .orderBy('shadow.name')
      .orderBy('shadow.version')
      .orderBy('times', 'desc')
      .orderBy('operation')
      .orderBy('path'),
  );
  return [...Map.groupBy(rows, ({ name, version }) => `${name}@${version}`).values()].flatMap(([first, ...others]) => {
    if (!first) return [];
    const { name, version, oneOf, startedAt, stoppedAt, same, different, failed, skipped } = first;
    return [
      {
        name,
        version,
        oneOf,
        startedAt,
        stoppedAt,
        same: Number(same),
        different: Number(different),
        failed: Number(failed),
        skipped: Number(skipped),
        examples: [first, ...others].flatMap(exampleOf),
      },
    ];
  });
}

/** The example of a joined row. A shadow without examples has one row in which all of its columns are null. */
function exampleOf({ operation, path, times, older, newer, position, seenAt }: JoinedExample): ShadowExample[] {
  if (operation === null || path === null || older === null || newer === null || seenAt === null) return [];
  return [{ operation, path, times: Number(times), older, newer, position, seenAt }];
}

type JoinedExample = { readonly [Name in Exclude<keyof ShadowExample, 'times'>]: ShadowExample[Name] | null } & {
  readonly times: bigint | null;
};
