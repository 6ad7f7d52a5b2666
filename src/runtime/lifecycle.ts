import { RefoldError } from '../errors.ts';
import type { Projection } from '../projections/projection.ts';
import type { VersionState } from '../projections/version-map.ts';
import type { Database } from '../store/database.ts';
import { dropLater } from '../store/old-tables.ts';
import { createReadTable, moveView } from '../store/read-table.ts';
import { highestActive, lockVersion, readRegistry, recordStep } from '../store/registry.ts';
import type { Queryable } from '../store/statement.ts';

/** Who makes a step in the life of a version, and why; kept in the audit log. */
export interface StepReason {
  readonly actor: string;
  readonly reason: string;
}

export interface Lifecycle {
  /** A building version has caught up: it becomes ready and, where its declaration says so, active. */
  caughtUp(projection: Projection, actor: string): Promise<VersionState>;
  /** Puts a ready version into service. @throws RefoldError `INVALID_TRANSITION` */
  activate(name: string, version: number, step: StepReason): Promise<void>;
  /** Takes the highest active version out of service; the next lower active one answers from then on. @throws RefoldError `INVALID_TRANSITION` */
  rollback(name: string, step: StepReason): Promise<{ from: number; to: number }>;
  /**
   * Ends the maintenance of a version; its table is dropped after a grace period.
   *
   * @param graceSeconds time in which the table can still be read by SQL; a day by default
   * @throws RefoldError `INVALID_TRANSITION`
   */
  retire(name: string, version: number, step: StepReason, graceSeconds?: number): Promise<void>;
}

// A reader in the middle of a long query on the stable view must not hold up an activation for long, nor everybody who queues behind it.
const viewLockTimeout = '3s';

/**
 * A building version is complete: it becomes ready and, where its declaration says so, active.
 * Within a transaction; its table must have its indexes.
 */
export async function completeVersion(
  tx: Queryable,
  readSchema: string,
  projection: Projection,
  step: StepReason,
): Promise<VersionState> {
  const { name, version, activation } = projection;
  const { state, heldReason } = await expectVersion(tx, name, version);
  if (state !== 'building') return state;
  await recordStep(tx, { name, version, from: 'building', to: 'ready', heldReason, ...step });
  if (activation.by === 'manual' || heldReason !== null) return 'ready';
  await becomeActive(tx, readSchema, name, version, { ...step, reason: `${step.reason}, activation 'auto'` });
  return 'active';
}

async function becomeActive(
  tx: Queryable,
  readSchema: string,
  name: string,
  version: number,
  step: StepReason,
): Promise<void> {
  await recordStep(tx, { name, version, from: 'ready', to: 'active', heldReason: null, ...step });
  await pointView(tx, readSchema, name);
}

/** Points the stable view at the highest active version's table. */
export async function pointView(tx: Queryable, readSchema: string, name: string): Promise<void> {
  const active = await highestActive(tx, name);
  await tx.query({ text: `set local lock_timeout = '${viewLockTimeout}'` });
  await moveView(tx, readSchema, name, active?.tableName ?? null);
}

/** Every step is one transaction: the state, the audit log, the stable view, and the notification of every process. */
export function createLifecycle(db: Database, readSchema: string): Lifecycle {
  return {
    async caughtUp(projection, actor) {
      await createReadTable(projection, readSchema).createIndexes(db);
      return db.transaction((tx) => completeVersion(tx, readSchema, projection, { actor, reason: 'caught up' }));
    },
    async activate(name, version, step) {
      await db.transaction(async (tx) => {
        const { state } = await expectVersion(tx, name, version);
        switch (state) {
          case 'ready':
            return becomeActive(tx, readSchema, name, version, step);
          case 'active':
            throw refused(name, version, `is active already.`);
          case 'building':
            throw refused(name, version, `is still building; 'refold status' shows how far it is.`);
          case 'retired':
          case 'failed':
            throw refused(name, version, `is ${state}; declare the next version instead.`);
        }
      });
    },
    rollback: (name, step) =>
      db.transaction(async (tx) => {
        const active = (await readRegistry(tx))
          .filter((entry) => entry.name === name && entry.state === 'active')
          .map(({ version }) => version);
        const [to, from] = active.slice(-2);
        if (from === undefined || to === undefined) {
          const found =
            active.length === 1 ? `only ${name}@${active[0]} is active` : `no version of '${name}' is active`;
          throw new RefoldError(
            'INVALID_TRANSITION',
            `Can't roll back: ${found}, so nothing could answer in its place.`,
            { name },
          );
        }
        const locked = await expectVersion(tx, name, from);
        if (locked.state !== 'active') throw refused(name, from, `is ${locked.state} by now; look at 'refold status'.`);
        await recordStep(tx, {
          name,
          version: from,
          from: 'active',
          to: 'ready',
          heldReason: `rolled back by ${step.actor}: ${step.reason}`,
          ...step,
        });
        await pointView(tx, readSchema, name);
        return { from, to };
      }),
    async retire(name, version, step, graceSeconds = 86_400) {
      await db.transaction(async (tx) => {
        const { state, tableName } = await expectVersion(tx, name, version);
        if (state === 'retired') throw refused(name, version, 'is retired already.');
        await recordStep(tx, { name, version, from: state, to: 'retired', heldReason: null, ...step });
        await pointView(tx, readSchema, name);
        await dropLater(tx, readSchema, tableName, graceSeconds);
      });
    },
  };
}

/** A version of the registry, locked. @throws RefoldError `INVALID_TRANSITION` */
export async function expectVersion(tx: Queryable, name: string, version: number) {
  const found = await lockVersion(tx, name, version);
  if (!found) throw refused(name, version, `is not in the registry; 'refold status' lists the versions.`);
  return found;
}

export function refused(name: string, version: number, problem: string): RefoldError {
  return new RefoldError('INVALID_TRANSITION', `${name}@${version} ${problem}`, { name, version });
}
