import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../src/errors.ts';
import { readStatusOfStores, type VersionStatus } from '../src/runtime/monitoring/status.ts';
import { acceptRebuild } from '../src/runtime/rebuilds/rebuild.ts';
import type { Database } from '../src/store/postgres/database.ts';
import { readReactors } from '../src/store/reactors/reactors.ts';
import { readRebuilds } from '../src/store/registry/rebuilds.ts';
import { isAway } from './traffic.ts';
import type { World } from './world.ts';

/** Much longer than the longest back-off of a worker. */
export const patienceMs = 180_000;

/**
 * Continues stopped processes, starts those that are down, and appends nothing: waits until all read tables are complete. Activates a
 * rebuild that waits for an operator because of its dead letters. If nothing comes nearer to rest for {@link patienceMs}, returns what is not at
 * rest: on a busy machine, rebuilds of a long log may take any time.
 */
export async function settle(world: World): Promise<readonly string[]> {
  for (const place of [...world.workers, ...world.gateways]) {
    if (place.process?.stopped) place.process.signal('SIGCONT');
    if (!place.process) world.start(place);
  }
  await world.started();
  await Promise.all([world.traffic.pause(), world.clients.pause()]);
  let deadline = Date.now() + patienceMs;
  const furthest = new Map<string, bigint>();
  for (let before = -1n; ; ) {
    const { head, left, checkpoints } = await unsettled(world);
    for (const [name, checkpoint] of checkpoints) {
      if (checkpoint <= (furthest.get(name) ?? -1n)) continue;
      furthest.set(name, checkpoint);
      deadline = Date.now() + patienceMs;
    }
    // An operation that a client gave up may still be running in a gateway. The log is at rest when it no longer changes.
    if ((left.length === 0 && head === before) || Date.now() > deadline) return left;
    before = head;
    for (const { db } of [world.stores.stores.home, ...world.stores.stores.apart]) await acceptHeldRebuilds(db);
    await pause(100);
  }
}

/** As an operator would. Meanwhile, a rebuild may have succeeded without dead letters, or another owner may have started it again. */
export async function acceptHeldRebuilds(db: Database): Promise<void> {
  try {
    for (const { name, version, heldReason } of await readRebuilds(db)) {
      if (heldReason === null) continue;
      await acceptRebuild(db, name, version, { actor: 'chaos', reason: heldReason });
    }
  } catch (error) {
    if (!isAway(error) && !(error instanceof RefoldError && error.code === 'INVALID_TRANSITION')) throw error;
  }
}

interface Unsettled {
  readonly head: bigint;
  readonly left: readonly string[];
  /** How far each version, rebuild and reactor is. */
  readonly checkpoints: readonly (readonly [string, bigint])[];
}

async function unsettled({ db, stores, log, workers, gateways }: World): Promise<Unsettled> {
  const dead = [...workers, ...gateways].flatMap(({ process }) =>
    process?.death === undefined ? [] : [`${process.name} ${process.death}:\n${process.said.slice(-60).join('\n')}`],
  );
  try {
    const horizon = await log.horizon();
    const head = await log.head();
    const reactors = await readReactors(db);
    const { versions, away } = await readStatusOfStores(stores.stores, log);
    const status = versions.filter(({ state }) => state !== 'retired');
    const left = [
      ...dead,
      ...away.map((name) => `the store ${name} is away`),
      ...reactors
        .filter(({ checkpoint }) => checkpoint < horizon)
        .map(
          ({ name, checkpoint, status: doing, owner, error }) =>
            `the reactor ${name} is at ${checkpoint} of ${head}, ${doing}, owned by ${owner ?? 'nobody'}${error ? `, its error: ${error.message}` : ''}`,
        ),
      ...(horizon === head ? [] : [`the horizon is at ${horizon}, the head at ${head}`]),
      ...status
        .filter((version) => version.position < horizon || version.state === 'building' || version.rebuild)
        .map(describe),
    ];
    const checkpoints = [
      ...reactors.map(({ name, checkpoint }) => [name, checkpoint] as const),
      ...status.map(({ name, version, position }) => [`${name}@${version}`, position] as const),
      ...status.map(
        ({ name, version, rebuild }) => [`${name}@${version}, rebuilt`, rebuild?.checkpoint ?? 0n] as const,
      ),
    ];
    return { head, left, checkpoints };
  } catch (error) {
    if (!isAway(error)) throw error;
    return { head: -1n, left: [...dead, String(error)], checkpoints: [] };
  }
}

function describe({ name, version, state, position, head, owner, processor, error, rebuild }: VersionStatus): string {
  const building = rebuild
    ? `; being rebuilt, at ${rebuild.checkpoint}, ${rebuild.status}, by ${rebuild.owner ?? 'nobody'}${rebuild.error ? ` (${rebuild.error.message})` : ''}${rebuild.heldReason ? `, held: ${rebuild.heldReason}` : ''}`
    : '';
  return `${name}@${version} is ${state} at ${position} of ${head}, ${processor}, owned by ${owner ?? 'nobody'}${error ? `, its error: ${error.message}` : ''}${building}`;
}
