import { RefoldError } from '../errors.ts';
import { type Projection, storedIn } from '../projections/projection.ts';
import type { Database, Transaction } from '../store/database.ts';
import { deleteDeadLettersOf } from '../store/dead-letters.ts';
import { readHead } from '../store/horizon.ts';
import { registryLockKey } from '../store/lock-keys.ts';
import { createReadSchema, createReadTable } from '../store/read-table.ts';
import { deleteRebuild } from '../store/rebuilds.ts';
import {
  insertVersion,
  lockRegistry,
  type NewVersion,
  type RegisteredVersion,
  readRegistry,
  recordStep,
  resetVersion,
} from '../store/registry.ts';

import { completeVersion } from './lifecycle.ts';

export interface RegisterOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  readonly actor: string;
  /** Rebuilds a version whose table or code was edited, instead of refusing or warning. */
  readonly development: boolean;
}

/**
 * Brings the registry and the declarations together: new versions get their table and start building, edited ones are noticed.
 * All or nothing; processes that start together take turns.
 *
 * @returns what an operator should know, as sentences.
 * @throws RefoldError `PROJECTION_CHANGED`, `PROJECTION_REMOVED`
 */
export async function registerVersions({
  db,
  readSchema,
  projections,
  actor,
  development,
}: RegisterOptions): Promise<string[]> {
  return db.transaction(async (tx) => {
    await lockRegistry(tx, registryLockKey);
    await createReadSchema(tx, readSchema);
    const registered = await readRegistry(tx);
    const warnings = removedVersions(registered, projections);
    for (const projection of projections) {
      const known = registered.find((entry) => entry.name === projection.name && entry.version === projection.version);
      if (!known) await declareVersion(tx, readSchema, projection, actor);
      else warnings.push(...(await compareVersion(tx, readSchema, projection, known, { actor, development })));
    }
    return warnings;
  });
}

function removedVersions(registered: readonly RegisteredVersion[], projections: readonly Projection[]): string[] {
  const warnings: string[] = [];
  for (const [name, versions] of Map.groupBy(
    registered.filter((entry) => entry.state === 'active'),
    (entry) => entry.name,
  )) {
    const declared = projections
      .filter((projection) => projection.name === name)
      .map((projection) => projection.version);
    const undeclared = versions.map((entry) => entry.version).filter((version) => !declared.includes(version));
    const highest = Math.max(...versions.map((entry) => entry.version));
    if (undeclared.length === 0) continue;
    if (undeclared.length === versions.length) {
      const next = declared.length > 0 ? ` until ${name}@${Math.max(...declared)} is active` : '';
      throw new RefoldError(
        'PROJECTION_REMOVED',
        `${name}@${highest} is active, but this program declares no active version of '${name}': its readers would lose it. Declare ${name}@${highest} again${next}, or take it out of service with 'refold retire ${name}@${highest}'.`,
        { name, version: highest },
      );
    }
    if (undeclared.includes(highest))
      warnings.push(
        `${name}@${highest} is active, but this program declares no version above ${name}@${Math.max(...declared)}; it serves that one.`,
      );
    else
      warnings.push(
        ...undeclared.map(
          (version) =>
            `${name}@${version} is active, but this program does not declare it and so does not keep it current. When nothing needs it any more: 'refold retire ${name}@${version}'.`,
        ),
      );
  }
  return warnings;
}

async function declareVersion(
  tx: Transaction,
  readSchema: string,
  projection: Projection,
  actor: string,
): Promise<void> {
  const { name, version } = projection;
  const table = createReadTable(projection, readSchema);
  await table.create(tx);
  await insertVersion(tx, newVersion(projection, readSchema));
  await recordStep(tx, { name, version, from: null, to: 'building', actor, reason: 'declared', heldReason: null });
  // Nothing to build: a new application answers from its first moment.
  if ((await readHead(tx)) > 0n) return;
  await table.createIndexes(tx);
  await completeVersion(tx, readSchema, projection, { actor, reason: 'the log is empty' });
}

async function compareVersion(
  tx: Transaction,
  readSchema: string,
  projection: Projection,
  known: RegisteredVersion,
  { actor, development }: { actor: string; development: boolean },
): Promise<string[]> {
  const { id, name, version } = projection;
  if (known.state === 'retired')
    return [`${id} is retired: it is declared, but not maintained and not served. Remove its declaration.`];
  const tableChanged = known.tableFingerprint !== projection.tableFingerprint;
  const codeChanged = known.codeFingerprint !== projection.codeFingerprint;
  if (!tableChanged && !codeChanged) return [];
  if (development) {
    const table = createReadTable(projection, readSchema);
    await tx.query({ text: `drop view if exists "${readSchema}"."${name}"` });
    await createReadTable(storedIn(projection, known.tableName), readSchema).drop(tx);
    await deleteRebuild(tx, name, version);
    await deleteDeadLettersOf(tx, known.tableName);
    await table.drop(tx);
    await table.create(tx);
    await resetVersion(tx, newVersion(projection, readSchema));
    await recordStep(tx, {
      name,
      version,
      from: known.state,
      to: 'building',
      actor,
      reason: `${tableChanged ? 'table' : 'code'} changed in development`,
      heldReason: null,
    });
    return [`${id}: its ${tableChanged ? 'table' : 'code'} changed, so it is built anew (development).`];
  }
  if (tableChanged) {
    throw new RefoldError(
      'PROJECTION_CHANGED',
      `${id}: its table is declared differently from the one in the database. Undo the change and declare it as ${name}@${version + 1} beside this version.`,
      { name, version },
    );
  }
  return [
    `${id}: the code of its key or evolve is not the code that built its rows. Rows folded from now on follow the new code, older ones don't. If results differ, declare ${name}@${version + 1}.`,
  ];
}

function newVersion(projection: Projection, readSchema: string): NewVersion {
  const columns = Object.entries(projection.columns).map(([name, { type, flags }]) => ({
    name,
    sqlName: projection.sqlNames[name],
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
    definition: { columns, keyColumns: projection.keyColumns, filter: projection.filter, graphql: projection.graphql },
  };
}
