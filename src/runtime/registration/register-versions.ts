import { RefoldError } from '../../errors.ts';
import { defaultStore, type Projection, storedIn } from '../../projections/projection/projection.ts';
import { readHead } from '../../store/log/horizon.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import { deleteDiscards } from '../../store/processors/discards.ts';
import { forgetLeftOut } from '../../store/processors/left-out.ts';
import { changePartitions } from '../../store/processors/partitions.ts';
import { retryStopped } from '../../store/processors/stopped-processors.ts';
import { answering } from '../../store/registry/all-registries.ts';
import { readDefinitions, resetVersion, updateDefinitions } from '../../store/registry/declared-versions.ts';
import { becomeLiveIfEmpty, declareInline, forgetInline, keepFromLive } from '../../store/registry/inline-versions.ts';
import { deleteRebuild } from '../../store/registry/rebuilds.ts';
import { lockRegistry, type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { storedOnce } from '../../store/registry/stored-once.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import { forgetDifferences } from '../../store/registry/verifications.ts';
import { registryLockKey } from '../../store/server/lock-keys.ts';
import { checkPartitionHash } from '../../store/set-based/row-choice.ts';
import { logOf } from '../../store/statements/statement.ts';
import type { StoredDefinition } from '../../store/statements/stored-json.ts';
import { dropLater } from '../../store/tables/old-tables.ts';
import { createReadSchema } from '../../store/tables/read-table.ts';
import { deleteTableSnapshotsOf } from '../../store/tables/table-snapshots.ts';
import type { SchemaDeclarations } from '../schema-changes/schema-changes.ts';
import { expectVersion } from '../versions/expect-version.ts';
import { leaveInline } from '../versions/leave-inline.ts';
import { elsewhereText, inlineElsewhere, withOtherStores } from '../versions/registries.ts';
import { unreadNames } from '../versions/undeclared-events.ts';
import { createVersionTables, leaveTable } from '../versions/version-tables.ts';
import { announceStart, type StartingProcess } from './announce-start.ts';
import { codeChangedMessage, endingRules, removedVersions, tableChangedMessage } from './changed-declaration.ts';
import { checkSqlFold, declareVersions, expectReached, newVersion } from './declare-versions.ts';

export interface RegisterOptions {
  readonly db: Database;
  /** The name of its store. Versions of other stores are not registered in it. @default 'default' */
  readonly store?: string;
  readonly readSchema: string;
  readonly declarations: SchemaDeclarations;
  readonly actor: string;
  /** Rebuilds a version whose table or code was edited, instead of refusing or warning. */
  readonly development: boolean;
  /** The process that starts. It is announced. @default none starts */
  readonly described?: StartingProcess;
}

/**
 * Compares the declarations with the registry. New versions get their table and start building; edited ones are detected.
 * Everything commits or nothing does. Processes that start at the same time take turns.
 *
 * @returns warnings for the operator, as sentences.
 * @throws RefoldError `PROJECTION_CHANGED`, `PROJECTION_REMOVED`, `OPTION_DIFFERS`
 */
export async function registerVersions(options: RegisterOptions): Promise<string[]> {
  for (;;) {
    await leaveAppends(options);
    try {
      return await register(options);
    } catch (error) {
      if (!(error instanceof JoinedAgain)) throw error;
    }
  }
}

/** Runs before anything is locked, because running appends may take long. */
async function leaveAppends(options: RegisterOptions): Promise<void> {
  const { db, development } = options;
  const registered = await readRegistry(db);
  for (const projection of ownProjections(options, registered)) {
    const known = registered.find((entry) => entry.name === projection.name && entry.version === projection.version);
    if (!known || known.state === 'retired' || known.inline === null) continue;
    if (projection.mode !== 'inline' || (development && isEdited(projection, known))) await leaveInline(db, projection);
  }
}

/** Another process has made a version live that must change here. Nothing is written. */
class JoinedAgain extends Error {}

/** @throws JoinedAgain if appends fold into the version */
async function expectLeft(tx: Transaction, { id, name, version }: Projection): Promise<void> {
  if (!(await keepFromLive(tx, name, version))) throw new JoinedAgain(id);
}

function isEdited(projection: Projection, known: RegisteredVersion): boolean {
  return known.tableFingerprint !== projection.tableFingerprint || known.codeFingerprint !== projection.codeFingerprint;
}

/** The versions that are declared in this store, and those that are in it although another one is declared. */
function ownProjections(
  { store = defaultStore, declarations }: RegisterOptions,
  registered: readonly RegisteredVersion[],
): readonly Projection[] {
  const isHere = ({ name, version }: Projection) =>
    registered.some((entry) => entry.name === name && entry.version === version && entry.state !== 'retired');
  return declarations.projections.filter((projection) => projection.store === store || isHere(projection));
}

function register(options: RegisterOptions): Promise<string[]> {
  const { db, readSchema, declarations, actor, development, described } = options;
  return db.transaction(async (tx) => {
    await lockRegistry(tx, registryLockKey);
    await announceStart(tx, readSchema, described);
    await createReadSchema(tx, readSchema);
    const registered = await readRegistry(tx);
    const all = storedOnce(await withOtherStores(tx, registered));
    const names = new Set(registered.map(({ name }) => name));
    const named = all.filter(({ name }) => names.has(name));
    const warnings = removedVersions(named, declarations.projections);
    warnings.push(...(await endingRules(tx, registered, declarations.projections)));
    const placed = ownProjections(options, registered).map((projection) =>
      placeOf(options, projection, registered, all),
    );
    warnings.push(...placed.flatMap(({ warning }) => warning ?? []));
    const own = placed.filter(({ isHere }) => isHere);
    const isNew = own.flatMap(({ projection, known }) => (known ? [] : [projection]));
    const served = await servedAmong(tx, isNew, registered);
    for (const { projection } of own)
      if (projection.sqlFold && projection.partitions > 1) await checkPartitionHash(tx, projection.id);
    // Versions declared together with an empty log have served no clients, so they cannot break any.
    const isServed = (projection: Projection) => served.has(projection);
    await declareVersions(tx, isNew, { readSchema, declarations, actor, isServed });
    const definitions = await readDefinitions(tx);
    const sameTable = own.filter(({ projection, known }) => known && isSameTable(projection, known));
    await updateDefinitions(
      tx,
      sameTable.map(({ projection }) => newVersion(projection, readSchema)),
    );
    for (const { projection, known } of own) {
      const before = definitions.get(projection.id);
      if (known && before) {
        const compared = { ...known, filter: before.filter };
        warnings.push(...(await compareVersion(tx, readSchema, projection, compared, { actor, development })));
      }
      if (known?.state !== 'retired') await compareMode(tx, projection, known);
      if (known) await adjustPartitions(tx, projection, known, actor);
    }
    await becomeLiveIfEmpty(
      tx,
      isNew.filter(({ mode, uniqueIndexes }) => mode === 'inline' && uniqueIndexes.length > 0),
    );
    return warnings;
  });
}

interface Placed {
  readonly projection: Projection;
  readonly known: RegisteredVersion | undefined;
  /** Whether this store has its rows, or will have them. */
  readonly isHere: boolean;
  readonly warning?: string;
}

/** @param all the versions of all stores. @throws RefoldError `PROJECTION_CHANGED` */
function placeOf(
  { store = defaultStore }: RegisterOptions,
  projection: Projection,
  registered: readonly RegisteredVersion[],
  all: readonly RegisteredVersion[],
): Placed {
  const known = knownOf(registered, projection);
  if (projection.mode === 'inline' && store !== defaultStore) throw inlineElsewhere(projection, store);
  const elsewhere = knownOf(
    all.filter((entry) => entry !== known),
    projection,
  );
  if (!elsewhere || elsewhere.state === 'retired') return { projection, known, isHere: true };
  const isHere = known !== undefined && known.state !== 'retired';
  return { projection, known, isHere, ...(projection.store === store ? { warning: elsewhereText(projection) } : {}) };
}

function knownOf(registered: readonly RegisteredVersion[], { name, version }: Projection) {
  return registered.find((entry) => entry.name === name && entry.version === version);
}

function isSameTable(projection: Projection, known: RegisteredVersion): boolean {
  return known.state !== 'retired' && known.tableFingerprint === projection.tableFingerprint;
}

/** Those of the projections of which a version answers, in any store. */
async function servedAmong(
  tx: Transaction,
  projections: readonly Projection[],
  registered: readonly RegisteredVersion[],
): Promise<ReadonlySet<Projection>> {
  const active = new Set(registered.filter(({ state }) => state === 'active').map(({ name }) => name));
  const served = new Set<Projection>();
  for (const projection of projections) {
    const { name } = projection;
    const isElsewhere = !active.has(name) && (tx.elsewhere?.storesOf(name) ?? []).length > 0;
    if (active.has(name) || (isElsewhere && (await answering(tx, name)) !== undefined)) served.add(projection);
  }
  return served;
}

/** A version declared inline joins the appends when it has caught up. A version no longer declared inline leaves them. */
async function compareMode(
  tx: Transaction,
  projection: Projection,
  known: RegisteredVersion | undefined,
): Promise<void> {
  const { name, version, mode } = projection;
  if (mode === 'inline') return declareInline(tx, projection);
  if (!known || known.inline === null) return;
  await expectLeft(tx, projection);
  await forgetInline(tx, name, version);
}

async function compareVersion(
  tx: Transaction,
  readSchema: string,
  projection: Projection,
  known: RegisteredVersion & Pick<StoredDefinition, 'filter'>,
  { actor, development }: { actor: string; development: boolean },
): Promise<string[]> {
  const { id, name, version } = projection;
  if (known.state === 'retired')
    return [
      `${id} is retired: it is declared, but not maintained and not served. Remove its declaration${projection.tearDown ? ' when its table has been dropped: its tearDown runs then' : ''}.`,
    ];
  const tableChanged = known.tableFingerprint !== projection.tableFingerprint;
  const codeChanged = known.codeFingerprint !== projection.codeFingerprint;
  const unread = await unreadNames(tx, projection, known.filter);
  if (stoppedWithOtherCode(projection, known)) await retryStopped(tx, name, version);
  if (!tableChanged && !codeChanged) return unread === undefined ? [] : [unread];
  if (!tableChanged) await checkSqlFold(tx, readSchema, storedIn(projection, known.tableName));
  if (development) {
    expectReached(projection, await readHead(logOf(tx)));
    await expectLeft(tx, projection);
    await recordTransition(tx, {
      name,
      version,
      from: known.state,
      to: 'building',
      actor,
      reason: `${tableChanged ? 'table' : 'code'} changed in development`,
      heldReason: null,
    });
    const rebuild = await deleteRebuild(tx, name, version);
    if (rebuild && rebuild.tableName !== known.tableName) await dropLater(tx, readSchema, rebuild.tableName, 0);
    await forgetLeftOut(tx, known.tableName);
    // The edited code must process the events that the old code could not fold.
    await deleteDiscards(tx, name, version);
    if (tableChanged) await deleteTableSnapshotsOf(tx, name, version);
    const emptied = await leaveTable(tx, projection, known, readSchema);
    await createVersionTables(tx, [emptied], readSchema);
    await checkSqlFold(tx, readSchema, emptied);
    await forgetDifferences(tx, name, version);
    await resetVersion(tx, newVersion(emptied, readSchema));
    return [`${id}: its ${tableChanged ? 'table' : 'code'} changed, so it is rebuilt (development).`];
  }
  if (tableChanged) {
    throw new RefoldError('PROJECTION_CHANGED', tableChangedMessage(projection, known), { name, version });
  }
  return [codeChangedMessage(projection)];
}

/** Even if the code that stopped is this code, other code that it calls may be fixed: then the retry waits until the stopped owner's process ends. */
function stoppedWithOtherCode({ codeFingerprint }: Projection, { partitions }: RegisteredVersion): boolean {
  return partitions.some(({ status, error }) => status === 'stopped' && error?.codeFingerprint !== codeFingerprint);
}

/** All processes use the registered number of partitions. A process that starts with another number changes it for all. */
async function adjustPartitions(
  tx: Transaction,
  { id, name, version, partitions }: Projection,
  known: RegisteredVersion,
  actor: string,
): Promise<void> {
  const before = known.partitions.length;
  if (known.state === 'retired' || before === partitions) return;
  if (tx.elsewhere?.placement === 'partition')
    throw new RefoldError(
      'PROJECTION_CHANGED',
      `${id}: it has ${before} partitions, and is declared with ${partitions}. The number is fixed, because its rows may be distributed by partition. Declare ${before} again, or the other number as ${name}@${version + 1}.`,
      { name, version },
    );
  const { state, heldReason, heldBy } = await expectVersion(tx, name, version);
  await changePartitions(tx, name, version, partitions);
  const reason = `${partitions} ${partitions === 1 ? 'partition' : 'partitions'} instead of ${before}`;
  const held = heldBy ? { heldReason, heldBy } : { heldReason };
  await recordTransition(tx, { name, version, from: state, to: state, actor, reason, ...held });
}
