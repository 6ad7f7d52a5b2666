import { invalidDeclaration, RefoldError } from '../../errors.ts';
import { storedFilter } from '../../events/event-names.ts';
import { beginning } from '../../events/global-position.ts';
import { defaultStore, type Projection, storedIn } from '../../projections/projection/projection.ts';
import { readHead } from '../../store/log/horizon.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import { deleteDiscards } from '../../store/processors/discards.ts';
import { forgetLeftOut } from '../../store/processors/left-out.ts';
import { changePartitions } from '../../store/processors/partitions.ts';
import { retryStopped } from '../../store/processors/stopped-processors.ts';
import { answering } from '../../store/registry/all-registries.ts';
import { currentCopies } from '../../store/registry/copies.ts';
import { updateDefinition } from '../../store/registry/definitions.ts';
import { declareInline, forgetInline, keepFromLive } from '../../store/registry/inline-versions.ts';
import { deleteRebuild } from '../../store/registry/rebuilds.ts';
import {
  insertVersion,
  lockRegistry,
  type NewVersion,
  type RegisteredVersion,
  readRegistry,
  resetVersion,
} from '../../store/registry/registry.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import { forgetDifferences } from '../../store/registry/verifications.ts';
import { registryLockKey } from '../../store/server/lock-keys.ts';
import { checkPartitionHash } from '../../store/set-based/row-choice.ts';
import { createSetMerge } from '../../store/set-based/set-merge.ts';
import { qualified } from '../../store/statements/identifiers.ts';
import { logOf } from '../../store/statements/statement.ts';
import { dropLater, dropNever } from '../../store/tables/old-tables.ts';
import { createReadSchema, createReadTable, moveView } from '../../store/tables/read-table.ts';
import { deleteTableSnapshotsOf } from '../../store/tables/table-snapshots.ts';
import type { SchemaDeclarations } from '../schema-changes/schema-changes.ts';
import { codeChangedMessage, removedVersions, tableChangedMessage } from './changed-declaration.ts';
import { expectVersion } from './expect-version.ts';
import { leaveInline } from './leave-inline.ts';
import { completeVersion } from './lifecycle.ts';
import { elsewhereText, expectKnownStore, inlineElsewhere, withOtherStores } from './registries.ts';
import { unreadNames } from './undeclared-events.ts';
import { createVersionTable, dropVersionTable } from './version-tables.ts';

export interface RegisterOptions {
  readonly db: Database;
  /** The name of its store. Versions of other stores are not registered in it. @default 'default' */
  readonly store?: string;
  /** All stores that are configured. @default those that declarations name */
  readonly knownStores?: readonly string[];
  readonly readSchema: string;
  readonly declarations: SchemaDeclarations;
  readonly actor: string;
  /** Rebuilds a version whose table or code was edited, instead of refusing or warning. */
  readonly development: boolean;
}

/**
 * Compares the declarations with the registry. New versions get their table and start building; edited ones are detected.
 * Everything commits or nothing does. Processes that start at the same time take turns.
 *
 * @returns warnings for the operator, as sentences.
 * @throws RefoldError `PROJECTION_CHANGED`, `PROJECTION_REMOVED`
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
    if (!known || known.state === 'retired') continue;
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

/** The versions that are declared in this store, and those that are in it because they have moved, or are about to. */
function ownProjections(
  { store = defaultStore, declarations }: RegisterOptions,
  registered: readonly RegisteredVersion[],
): readonly Projection[] {
  const isHere = ({ name, version }: Projection) =>
    registered.some((entry) => entry.name === name && entry.version === version && entry.state !== 'retired');
  return declarations.projections.filter((projection) => projection.store === store || isHere(projection));
}

function register(options: RegisterOptions): Promise<string[]> {
  const { db, store = defaultStore, readSchema, declarations, actor, development } = options;
  const knownStores = options.knownStores ?? declarations.projections.map(({ store }) => store);
  return db.transaction(async (tx) => {
    await lockRegistry(tx, registryLockKey);
    await createReadSchema(tx, readSchema);
    const registered = await readRegistry(tx);
    const everywhere = await withOtherStores(tx, registered);
    const current = currentCopies(everywhere);
    const names = new Set(registered.map(({ name }) => name));
    const warnings = removedVersions(
      current.filter(({ name }) => names.has(name)),
      declarations.projections,
    );
    for (const projection of ownProjections(options, registered)) {
      const known = registered.find((entry) => entry.name === projection.name && entry.version === projection.version);
      // Versions declared together with an empty log have served no clients, so they cannot break any.
      if (projection.sqlFold && projection.partitions > 1) await checkPartitionHash(tx, projection.id);
      const served =
        registered.some((entry) => entry.name === projection.name && entry.state === 'active') ||
        (tx.elsewhere !== undefined && (await answering(tx, projection.name)) !== undefined);
      const { name, version } = projection;
      const elsewhere = current.find((entry) => entry.name === name && entry.version === version && entry !== known);
      if (known?.state === 'retired') expectKnownStore(projection, known, knownStores);
      if (projection.mode === 'inline' && store !== defaultStore) throw inlineElsewhere(projection, store);
      if (elsewhere && elsewhere.state !== 'retired') {
        if (projection.store === store) warnings.push(elsewhereText(projection));
        if (!known || known.state === 'retired') continue;
      }
      if (!known) await declareVersion(tx, readSchema, projection, actor, served ? declarations : null);
      else warnings.push(...(await compareVersion(tx, readSchema, projection, known, { actor, development })));
      if (known?.state !== 'retired') await compareMode(tx, projection, known);
      if (known) await adjustPartitions(tx, projection, known, actor);
    }
    return warnings;
  });
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

async function declareVersion(
  tx: Transaction,
  readSchema: string,
  projection: Projection,
  actor: string,
  declarations: SchemaDeclarations | null,
): Promise<void> {
  const { name, version } = projection;
  const head = await expectReached(tx, projection);
  const table = createReadTable(projection, readSchema);
  await createVersionTable(tx, projection, readSchema);
  await checkSqlFold(tx, readSchema, projection);
  await insertVersion(tx, newVersion(projection, readSchema));
  const declared = { actor, reason: 'declared', heldReason: null };
  await recordTransition(tx, { name, version, from: null, to: 'building', ...declared });
  // An empty log leaves nothing to build, so a new application answers at once.
  if (head > 0n) return;
  await table.createIndexes(tx);
  await completeVersion(tx, readSchema, projection, { actor, reason: 'the log is empty' }, declarations);
}

/** Returns the end of the log. @throws RefoldError `INVALID_DECLARATION` if the version begins after it */
async function expectReached(tx: Transaction, { id, startAfter }: Projection): Promise<bigint> {
  const head = await readHead(logOf(tx));
  if (startAfter <= head) return head;
  throw invalidDeclaration(id, `'startAfter' is position ${startAfter}, and the log ends at ${head}.`);
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
    return [
      `${id} is retired: it is declared, but not maintained and not served. Remove its declaration${projection.tearDown ? ' when its table has been dropped: its tearDown runs then' : ''}.`,
    ];
  const tableChanged = known.tableFingerprint !== projection.tableFingerprint;
  const codeChanged = known.codeFingerprint !== projection.codeFingerprint;
  const unread = await unreadNames(tx, projection);
  if (!tableChanged) await updateDefinition(tx, newVersion(projection, readSchema));
  if (stoppedWithOtherCode(projection, known)) await retryStopped(tx, name, version);
  if (!tableChanged && !codeChanged) return unread === undefined ? [] : [unread];
  if (!tableChanged) await checkSqlFold(tx, readSchema, storedIn(projection, known.tableName));
  if (development) {
    await expectReached(tx, projection);
    await expectLeft(tx, projection);
    await moveView(tx, readSchema, name, null);
    await dropVersionTable(tx, storedIn(projection, known.tableName), readSchema);
    const rebuild = await deleteRebuild(tx, name, version);
    if (rebuild && rebuild.tableName !== known.tableName) await dropLater(tx, readSchema, rebuild.tableName, 0);
    await forgetLeftOut(tx, known.tableName);
    // The edited code must process the events that the old code could not fold.
    await deleteDiscards(tx, name, version);
    if (tableChanged) await deleteTableSnapshotsOf(tx, name, version);
    // The first table's name is used again, even if a rebuild had scheduled that table to be dropped.
    await dropNever(tx, readSchema, projection.tableName);
    await dropVersionTable(tx, projection, readSchema);
    await createVersionTable(tx, projection, readSchema);
    await checkSqlFold(tx, readSchema, projection);
    await forgetDifferences(tx, name, version);
    await resetVersion(tx, newVersion(projection, readSchema));
    await recordTransition(tx, {
      name,
      version,
      from: known.state,
      to: 'building',
      actor,
      reason: `${tableChanged ? 'table' : 'code'} changed in development`,
      heldReason: null,
    });
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

/** Makes an unknown column or function an error of the start, not of the first batch. */
async function checkSqlFold(tx: Transaction, readSchema: string, projection: Projection): Promise<void> {
  const { sqlFold, tableName } = projection;
  if (sqlFold) await createSetMerge(projection, sqlFold, qualified(readSchema, tableName), tx).check(tx);
}

/** All processes use the registered number of partitions. A process that starts with another number changes it for all. */
async function adjustPartitions(
  tx: Transaction,
  { name, version, partitions }: Projection,
  known: RegisteredVersion,
  actor: string,
): Promise<void> {
  const before = known.partitions.length;
  if (known.state === 'retired' || before === partitions) return;
  const { state, heldReason, heldBy } = await expectVersion(tx, name, version);
  await changePartitions(tx, name, version, partitions);
  const reason = `${partitions} ${partitions === 1 ? 'partition' : 'partitions'} instead of ${before}`;
  const held = heldBy ? { heldReason, heldBy } : { heldReason };
  await recordTransition(tx, { name, version, from: state, to: state, actor, reason, ...held });
}

/** What the registry stores of a declaration. */
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
