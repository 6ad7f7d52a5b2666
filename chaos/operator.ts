import { RefoldError } from '../src/index.ts';
import { discardDeadLetters, listDeadLetters, retryDeadLetters } from '../src/runtime/dead-letters/dead-letters.ts';
import { cancelRebuild, requestRebuild } from '../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace } from '../src/runtime/rebuilds/rebuild-in-place.ts';
import { dropSnapshot, listSnapshots, takeSnapshot } from '../src/runtime/rebuilds/table-snapshots.ts';
import { openOperatorStores } from '../src/runtime/stores/operator-stores.ts';
import { lifecycleOfStores } from '../src/runtime/stores/steps-of-stores.ts';
import type { TransitionReason } from '../src/runtime/versions/expect-version.ts';
import { createLifecycle } from '../src/runtime/versions/lifecycle.ts';
import { sqlStateOf } from '../src/store/postgres/database-errors.ts';
import { inEachStore } from '../src/store/read-store.ts';
import { readRebuilds } from '../src/store/registry/rebuilds.ts';
import { type RegisteredVersion, readRegistry } from '../src/store/registry/registry.ts';
import { inItsStore, operatedConfig } from './apart.ts';
import { credits, mendedCredits, projectionOf, versioned } from './domain.ts';
import type { Action } from './plan.ts';
import { isAway } from './traffic.ts';
import type { World } from './world.ts';

/** What an operator of the application may do at any time. */
export type Operation = Extract<
  Action,
  {
    readonly kind:
      | 'rebuild'
      | 'rebuild in place'
      | 'cancel a rebuild'
      | 'take a snapshot'
      | 'rebuild from a snapshot'
      | 'activate'
      | 'roll back'
      | 'retire'
      | 'retry dead letters'
      | 'discard dead letters';
  }
>;

/** The operation has nothing to apply to. */
export class NothingToDo extends Error {}

const readSchema = 'read_models';
const by: TransitionReason = { actor: 'chaos', reason: 'to see what comes of it' };
/** Short, to drop retired tables within the run. */
const graceSeconds = 3;

/**
 * Performs an operation and returns a line about the result. `only`: the read model to rebuild or copy, instead of any.
 *
 * @throws the error that an operator would see
 */
export function createOperator(world: World, only?: string): (operation: Operation) => Promise<string> {
  const { stores, log } = world;
  const config = operatedConfig(world.url, world.storeServer.url);
  const lifecycle = lifecycleOfStores(stores.stores, stores.find, (store) =>
    createLifecycle(store.db, readSchema, config),
  );
  const dbOf = async ({ name, version }: VersionName) => (await stores.find.of(name, version)).db;
  const concerns = ({ name }: VersionName) => only === undefined || name === only;
  const declaredAs = ({ name, version }: VersionName) => inItsStore(projectionOf(name, version));

  async function operate(operation: Operation): Promise<string> {
    const { draw } = operation;
    const maintained = (await inEachStore(stores.stores, readRegistry)).filter(
      (one) => one.state !== 'retired' && concerns(one),
    );
    switch (operation.kind) {
      case 'rebuild': {
        const found = pick(maintained, draw);
        await requestRebuild(await dbOf(found), declaredAs(found), readSchema, by);
        return idOf(found);
      }
      case 'rebuild in place': {
        const found = pick(maintained.filter(withoutHealed), draw);
        await rebuildInPlace({ db: await dbOf(found), log, readSchema, projection: declaredAs(found) }, by);
        return idOf(found);
      }
      case 'take a snapshot': {
        const found = pick(maintained.filter(withoutHealed), draw);
        const { name, version } = found;
        const db = await dbOf(found);
        const { id } = await takeSnapshot({ db, readSchema, name, version }, by);
        const [, , oldest] = await listSnapshots(db, name, version);
        if (oldest) await dropSnapshot(db, name, version, oldest.id, by);
        return `${name}@${version}: ${id}`;
      }
      case 'rebuild from a snapshot': {
        const found = pick((await inEachStore(stores.stores, listSnapshots)).filter(concerns), draw);
        const { id, name, version } = found;
        const db = await dbOf(found);
        const projection = declaredAs(found);
        if (operation.inPlace) await rebuildInPlace({ db, log, readSchema, projection }, by, { id });
        else await requestRebuild(db, projection, readSchema, by, { log, snapshot: { id } });
        return `${name}@${version} from ${id}`;
      }
      case 'cancel a rebuild': {
        const found = pick(await inEachStore(stores.stores, readRebuilds), draw);
        await cancelRebuild(await dbOf(found), found.name, found.version, readSchema, by);
        return idOf(found);
      }
      case 'activate': {
        const ready = maintained.filter(({ state }) => state === 'ready');
        const { name, version } = pick(ready, draw);
        await lifecycle.activate(name, version, by);
        return `${name}@${version}`;
      }
      case 'roll back': {
        const name = pick(Object.keys(versioned), draw);
        const { from, to } = await lifecycle.rollback(name, by);
        return `${name}@${from} → ${name}@${to}`;
      }
      case 'retire':
        return retire(maintained);
      case 'retry dead letters':
        return redeliver('retry', draw, operation.mended);
      case 'discard dead letters':
        return redeliver('discard', draw, false);
    }
  }

  /** Retires the lowest version of each read model, if a higher one can replace it in every process, gateways included. */
  async function retire(maintained: readonly RegisteredVersion[]): Promise<string> {
    const names = Object.keys(versioned);
    const lowest = Math.min(...maintained.filter(({ name }) => names.includes(name)).map(({ version }) => version));
    const others = maintained.filter(({ state, version }) => state === 'active' && version !== lowest);
    const served = names.every((name) =>
      [undefined, ...world.gateways].every((gateway) =>
        others.some(
          (other) =>
            other.name === name &&
            (!gateway?.process ||
              (gateway.process.lowest <= other.version && other.version <= gateway.process.highest)),
        ),
      ),
    );
    if (!served) return 'no version can replace it';
    for (const { name, version } of maintained)
      if (names.includes(name) && version === lowest) await lifecycle.retire(name, version, by, graceSeconds);
    world.lowest = lowest + 1;
    return `version ${lowest} of ${names.join(' and ')}`;
  }

  /** Redelivers one letter's row, or all. The session's name shows the judges what was done. */
  async function redeliver(how: 'retry' | 'discard', draw: number, mended: boolean): Promise<string> {
    const projection = inItsStore(credits);
    const letters = await listDeadLetters({ db: await dbOf(projection), log, readSchema, projection });
    const key = draw < 0.2 ? undefined : JSON.stringify(pick(letters, draw).key);
    const applicationName = how === 'discard' ? 'chaos discards' : 'chaos retries';
    const session = openOperatorStores(config, world.url, { maxConnections: 1, applicationName });
    try {
      const { db } = session.stores.of(projection);
      const redelivery = { db, log, readSchema, projection: mended ? inItsStore(mendedCredits) : projection };
      const done = await (how === 'discard' ? discardDeadLetters : retryDeadLetters)(redelivery, by, key);
      return `${key ?? 'all'}: ${done.folded} folded, ${done.discarded} discarded, ${done.left} left`;
    } finally {
      await session.close();
    }
  }

  return operate;
}

/** The message that an operator would see. A concurrent fault may make the action fail; the judges find wrong effects afterwards. */
export async function attempt(work: () => Promise<string>): Promise<string> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NothingToDo) return 'nothing to apply it to';
    // 55P03: a reader of the stable view held its lock for too long.
    const refused =
      error instanceof RefoldError && (error.code === 'INVALID_TRANSITION' || sqlStateOf(error) === '55P03');
    if (refused || isAway(error)) return `refused: ${(error as RefoldError).message}`; // as both say
    throw error;
  }
}

/** A retry with fixed code is visible only in the table that it wrote to: in a rebuild by the failing code, the same events fail again. */
function withoutHealed({ name }: RegisteredVersion): boolean {
  return name !== credits.name;
}

interface VersionName {
  readonly name: string;
  readonly version: number;
}

function idOf({ name, version }: VersionName): string {
  return `${name}@${version}`;
}

function pick<T>(among: readonly T[], draw: number): T {
  const picked = among[Math.floor(draw * among.length)];
  if (picked === undefined) throw new NothingToDo();
  return picked;
}
