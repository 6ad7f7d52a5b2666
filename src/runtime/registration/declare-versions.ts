import { invalidDeclaration } from '../../errors.ts';
import { storedFilter } from '../../events/event-names.ts';
import { beginning } from '../../events/global-position.ts';
import { waitsForMore } from '../../projections/projection/activation-rule.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { readHead } from '../../store/log/horizon.ts';
import { deleteCanaries } from '../../store/registry/canaries.ts';
import { insertVersions, type NewVersion } from '../../store/registry/declared-versions.ts';
import { recordTransitions } from '../../store/registry/transitions.ts';
import { createSetMerge } from '../../store/set-based/set-merge.ts';
import { qualified } from '../../store/statements/identifiers.ts';
import { logOf, type Queryable, runTogether } from '../../store/statements/statement.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import type { SchemaDeclarations } from '../schema-changes/schema-changes.ts';
import { completeVersion } from '../versions/lifecycle.ts';
import { createVersionTables, pointViews } from '../versions/version-tables.ts';

export interface DeclareOptions {
  readonly readSchema: string;
  readonly declarations: SchemaDeclarations;
  readonly actor: string;
  /** Whether a version of this projection answers clients, so the new one may break them. */
  readonly isServed: (projection: Projection) => boolean;
}

/**
 * Creates the tables of new versions, and adds them to the registry. What can be done for all of them at once is: an application may declare
 * hundreds.
 */
export async function declareVersions(
  tx: Queryable,
  projections: readonly Projection[],
  { readSchema, declarations, actor, isServed }: DeclareOptions,
): Promise<void> {
  if (projections.length === 0) return;
  const head = await readHead(logOf(tx));
  for (const projection of projections) expectReached(projection, head);
  await createVersionTables(tx, projections, readSchema);
  for (const projection of projections) await checkSqlFold(tx, readSchema, projection);
  await insertVersions(tx, ...projections.map((projection) => newVersion(projection, readSchema)));
  const declared = { to: 'building', actor, reason: 'declared', heldReason: null } as const;
  await recordTransitions(
    tx,
    projections.map(({ name, version }) => ({ name, version, from: null, ...declared })),
  );
  // An empty log leaves nothing to build, so a new application answers at once.
  if (head > 0n) return;
  const texts: string[] = [];
  for (const projection of projections) texts.push(...(await createReadTable(projection, readSchema).indexing(tx)));
  await runTogether(tx, texts);
  const step = { actor, reason: 'the log is empty' };
  await completeUnserved(
    tx,
    readSchema,
    projections.filter((projection) => !isServed(projection)),
    step,
  );
  for (const projection of projections.filter(isServed))
    await completeVersion(tx, readSchema, projection, step, declarations);
}

/** Like {@link completeVersion}, for new versions of projections that have no clients yet: there is nothing that they could break or miss. */
async function completeUnserved(
  tx: Queryable,
  readSchema: string,
  projections: readonly Projection[],
  { actor, reason }: { readonly actor: string; readonly reason: string },
): Promise<void> {
  const ready = { from: 'building', to: 'ready', actor, reason, heldReason: null } as const;
  await recordTransitions(
    tx,
    projections.map(({ name, version }) => ({ name, version, ...ready })),
  );
  const active = projections.filter(({ activation }) => activation.by !== 'manual' && !waitsForMore(activation));
  if (active.length === 0) return;
  const step = {
    from: 'ready',
    to: 'active',
    actor,
    reason: `${reason}, activation 'auto'`,
    heldReason: null,
  } as const;
  await recordTransitions(
    tx,
    active.map(({ name, version }) => ({ name, version, ...step })),
  );
  await deleteCanaries(tx, active);
  await pointViews(tx, readSchema, [...new Set(active.map(({ name }) => name))]);
}

/** @throws RefoldError `INVALID_DECLARATION` if the version begins after the end of the log */
export function expectReached({ id, startAfter }: Projection, head: bigint): void {
  if (startAfter <= head) return;
  throw invalidDeclaration(id, `'startAfter' is position ${startAfter}, and the log ends at ${head}.`);
}

/** Makes an unknown column or function an error of the start, not of the first batch. */
export async function checkSqlFold(tx: Queryable, readSchema: string, projection: Projection): Promise<void> {
  const { sqlFold, tableName } = projection;
  if (sqlFold) await createSetMerge(projection, sqlFold, qualified(readSchema, tableName), tx).check(tx);
}

export function newVersion(projection: Projection, readSchema: string): NewVersion {
  const columns = Object.entries(projection.columns).map(([name, { type, flags }]) => ({
    name,
    sqlName: String(projection.sqlNames[name]), // one for each column
    type,
    flags,
  }));
  return {
    name: projection.name,
    version: projection.version,
    tableSchema: readSchema,
    tableName: projection.tableName,
    tableFingerprint: projection.tableFingerprint,
    codeFingerprint: projection.codeFingerprint,
    partitions: projection.partitions,
    definition: {
      columns,
      keyColumns: projection.keyColumns,
      filter: storedFilter(projection.families, projection.filter),
      graphql: projection.graphql,
      relations: projection.relations,
      ...(projection.startAfter === beginning ? {} : { startAfter: projection.startAfter.toString() }),
    },
  };
}
