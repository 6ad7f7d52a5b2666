import { defaultStore, type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import { copyDiscards, deleteDiscards } from '../../store/processors/discards.ts';
import { changePartitions } from '../../store/processors/partitions.ts';
import type { ReadStore } from '../../store/read-store.ts';
import { beginArrival, nextCopy } from '../../store/registry/copies.ts';
import { insertVersions, resetVersion } from '../../store/registry/declared-versions.ts';
import { lockRegistry, type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import { registryLockKey } from '../../store/server/lock-keys.ts';
import { isDistributed } from '../../store/statements/placed.ts';
import { dropLater, dropNever } from '../../store/tables/old-tables.ts';
import { createReadSchema } from '../../store/tables/read-table.ts';
import { newVersion } from '../registration/declare-versions.ts';
import {
  checkDeclaredTable,
  expectVersion,
  refused,
  refusePaused,
  type TransitionReason,
} from '../versions/expect-version.ts';
import { createVersionTables, dropVersionTable } from '../versions/version-tables.ts';
import { bringBack } from './bring-back.ts';
import type { MoveOptions, Moving } from './moving.ts';

/**
 * Begins to move versions to another store: a copy of each is built there, while the present one answers. When all of them are complete, they
 * take over together. A version that has a copy there already, from a former move, is brought back at once.
 *
 * @returns the versions that are built
 * @throws RefoldError `INVALID_TRANSITION`, `PROJECTION_CHANGED`
 */
export async function beginMove(moving: readonly Moving[], options: MoveOptions): Promise<readonly Projection[]> {
  const { to, readSchema } = options;
  for (const { projection, from } of moving)
    if (from.name === to.name)
      throw refused(projection.name, projection.version, `is in the store '${to.name}' already.`);
  const there = await readRegistry(to.db);
  const isCopied = ({ projection: { name, version } }: Moving) =>
    there.some((one) => one.name === name && one.version === version && one.state !== 'retired' && !one.arrivingFrom);
  const built = moving.filter((one) => !isCopied(one));
  const sources = await Promise.all(built.map((one) => expectMovable(one, to)));
  const copied = moving.filter(isCopied);
  if (copied.length > 0) await bringBack(copied, options);
  if (built.length === 0) return [];
  await to.db.transaction(async (tx) => {
    await lockRegistry(tx, registryLockKey);
    await createReadSchema(tx, readSchema);
    for (const [index, one] of built.entries()) {
      await addCopy(tx, one, sources[index] as RegisteredVersion, options); // one for each
    }
  });
  return built.map(({ projection }) => projection);
}

async function expectMovable({ projection, from }: Moving, to: ReadStore): Promise<RegisteredVersion> {
  const { name, version, mode } = projection;
  if (mode === 'inline' && to.name !== defaultStore)
    throw refused(name, version, 'is inline: its rows commit with the appends, in the database of the log.');
  const source = (await readRegistry(from.db)).find((one) => one.name === name && one.version === version);
  if (!source) throw refused(name, version, `is not in the registry; 'refold status' lists the versions.`);
  if (source.state !== 'active')
    throw refused(
      name,
      version,
      `is ${source.state}; only an active version can move. A new version is built in the store that it names.`,
    );
  const { since = null, by = null, reason = null } = source.paused ?? {};
  refusePaused(name, version, { pausedAt: since, pausedBy: by, pausedReason: reason });
  checkDeclaredTable(projection, source.tableFingerprint);
  return source;
}

async function addCopy(
  tx: Transaction,
  { projection, from }: Moving,
  source: RegisteredVersion,
  { to, readSchema, step }: MoveOptions,
): Promise<void> {
  const { name, version } = projection;
  const former = (await readRegistry(tx)).find((one) => one.name === name && one.version === version);
  if (former && former.state !== 'retired')
    throw refused(name, version, `is on its way to the store '${to.name}' already: 'refold status' shows how far.`);
  const generation = nextCopy(Math.max(source.generation, former?.generation ?? 0));
  const copy = storedIn(projection, `${name}_v${version}_g${generation}`);
  await dropNever(tx, readSchema, copy.tableName);
  await dropVersionTable(tx, copy, readSchema);
  await createVersionTables(tx, [copy], readSchema);
  const registered = {
    ...newVersion(copy, readSchema),
    partitions: isDistributed(tx, projection) ? projection.partitions : source.partitions.length,
  };
  // The row of a former copy is kept: its epochs fence the owners that it had.
  if (former) {
    await resetVersion(tx, registered);
    if (former.partitions.length !== registered.partitions)
      await changePartitions(tx, name, version, registered.partitions);
    await deleteDiscards(tx, name, version);
  } else await insertVersions(tx, registered);
  await beginArrival(tx, projection, from.name, generation);
  await copyDiscards(from.db, tx, name, version);
  const reason = `moves here from the store '${from.name}': ${step.reason}`;
  const { actor } = step;
  await recordTransition(tx, {
    name,
    version,
    from: former?.state ?? null,
    to: 'building',
    heldReason: null,
    actor,
    reason,
  });
}

/** Ends a move that is under way. @throws RefoldError `INVALID_TRANSITION` if there is none */
export async function cancelMove(
  db: Database,
  { name, version }: Pick<Projection, 'name' | 'version'>,
  readSchema: string,
  { actor, reason }: TransitionReason,
): Promise<void> {
  await db.transaction(async (tx) => {
    const { state, arrivingFrom, tableName } = await expectVersion(tx, name, version);
    if (arrivingFrom === null || state === 'retired') throw refused(name, version, 'is not on its way to this store.');
    const step = { actor, reason: `move cancelled: ${reason}`, heldReason: null };
    await recordTransition(tx, { name, version, from: state, to: 'retired', ...step });
    await dropLater(tx, readSchema, tableName, 0);
  });
}
