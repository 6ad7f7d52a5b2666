import { setTimeout as pause } from 'node:timers/promises';
import { readStatus, type VersionStatus } from '../src/runtime/status.ts';
import { readReactors } from '../src/store/reactors.ts';
import { isAway } from './traffic.ts';
import type { World } from './world.ts';

/** Far beyond what the longest back-off of a worker takes, on a machine that is busy with other things. */
const patienceMs = 180_000;

/**
 * Everything that was stopped goes on, everybody who is down is started, and nothing is appended: waits until all read tables are complete.
 * Says what is not, if that does not come.
 */
export async function settle(world: World): Promise<readonly string[]> {
  await world.traffic.pause();
  for (const [place, worker] of world.workers.entries()) {
    if (worker?.stopped) worker.signal('SIGCONT');
    if (!worker) world.start(place);
  }
  await world.started();
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const left = await unsettled(world);
    if (left.length === 0 || Date.now() > deadline) return left;
    await pause(50);
  }
}

async function unsettled({ db, log, workers }: World): Promise<readonly string[]> {
  const dead = workers.flatMap((worker) =>
    worker?.death === undefined ? [] : [`${worker.name} ${worker.death}:\n${worker.said.slice(-20).join('\n')}`],
  );
  try {
    const horizon = await log.horizon();
    const head = await log.head();
    const reactors = await readReactors(db);
    const status = (await readStatus(db, log)).filter(({ state }) => state !== 'retired');
    return [
      ...dead,
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
  } catch (error) {
    if (!isAway(error)) throw error;
    return [...dead, String(error)];
  }
}

function describe({ name, version, state, position, head, owner, processor, error, rebuild }: VersionStatus): string {
  const building = rebuild
    ? `; being rebuilt, at ${rebuild.checkpoint}, ${rebuild.status}, by ${rebuild.owner ?? 'nobody'}${rebuild.error ? ` (${rebuild.error.message})` : ''}`
    : '';
  return `${name}@${version} is ${state} at ${position} of ${head}, ${processor}, owned by ${owner ?? 'nobody'}${error ? `, its error: ${error.message}` : ''}${building}`;
}
