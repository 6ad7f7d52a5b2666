import { setTimeout as pause } from 'node:timers/promises';
import { defineConfig, RefoldError } from '../src/index.ts';
import { discardDeadLetters, listDeadLetters, retryDeadLetters } from '../src/runtime/dead-letters.ts';
import { createLifecycle } from '../src/runtime/lifecycle.ts';
import { cancelRebuild, requestRebuild } from '../src/runtime/rebuild.ts';
import { rebuildInPlace } from '../src/runtime/rebuild-in-place.ts';
import type { StepReason } from '../src/runtime/step.ts';
import { dropSnapshot, listSnapshots, takeSnapshot } from '../src/runtime/table-snapshots.ts';
import { createDatabase } from '../src/store/database.ts';
import { sqlStateOf } from '../src/store/database-errors.ts';
import { createEventLog } from '../src/store/event-log.ts';
import { readRebuilds } from '../src/store/rebuilds.ts';
import { type RegisteredVersion, readRegistry } from '../src/store/registry.ts';
import { seeded } from '../test/support/account-traffic.ts';
import { until } from '../test/support/until.ts';
import { credits, declared, families, mendedCredits, projectionOf } from './domain.ts';
import { draftAppend } from './drafts.ts';
import type { FailOvers } from './fail-overs.ts';
import type { Action } from './plan.ts';
import { beginEntry, isAway, streamsOf } from './traffic.ts';
import type { Worker } from './workers.ts';
import type { World } from './world.ts';

export interface Actions {
  /** Does it, and says what came of it. What lasts goes on beside what is done next. */
  perform(action: Action): Promise<string>;
  /** Comes back when what lasts has ended. */
  ended(): Promise<void>;
}

const readSchema = 'read_models';
const by: StepReason = { actor: 'chaos', reason: 'to see what comes of it' };
/** Short, so that retired tables are dropped within the run. */
const graceSeconds = 3;

export function createActions(world: World, failOvers: FailOvers): Actions {
  const { db, log, cluster, options } = world;
  const lifecycle = createLifecycle(db, readSchema, defineConfig({ projections: declared(1, 1) }));
  const stranger = createEventLog(db, families);
  const lasting = new Set<Promise<void>>();

  function last(work: Promise<void>): void {
    const noted = work
      .catch(
        (error: unknown) => void world.incidents.push(error instanceof Error ? String(error.stack) : String(error)),
      )
      .finally(() => lasting.delete(noted));
    lasting.add(noted);
  }

  async function perform(action: Action): Promise<string> {
    const watched = 'watched' in action && action.watched;
    // The bound of a fail-over is for those who are there to take over.
    if (watched) await world.started();
    failOvers.disturbed(watched);
    switch (action.kind) {
      case 'kill': {
        const worker = upFrom(action.worker);
        if (!worker) return 'all are down';
        await killed(worker, watched);
        return worker.name;
      }
      case 'stall': {
        const worker = upFrom(action.worker);
        if (!worker) return 'all are down or stall';
        return stalled(worker, action.leases * options.leaseSeconds * 1_000, watched);
      }
      case 'restart':
      case 'deploy': {
        const worker = upFrom(action.worker);
        if (!worker) return 'all are down or stall';
        const place = await ended(worker);
        const next = world.start(place, action.kind === 'deploy' ? world.highest + 1 : undefined);
        return `${worker.name} → ${next}, with balance@${world.highest}`;
      }
      case 'cut sessions':
        return `${await cutSessions(action.share, action.draw)} sessions`;
      case 'restart PostgreSQL':
        await cluster.restart(action.how);
        return action.how;
      case 'append slowly':
        last(appendSlowly(action.seconds, action.commits));
        return '';
      case 'rebuild':
      case 'rebuild in place':
      case 'cancel a rebuild':
      case 'take a snapshot':
      case 'rebuild from a snapshot':
      case 'activate':
      case 'roll back':
      case 'retire':
      case 'retry dead letters':
      case 'discard dead letters':
        return attempt(() => operate(action));
    }
  }

  /** The worker in this place, or in the next where one is up. */
  function upFrom(place: number): Worker | undefined {
    const places = world.workers.map((_, index) => (place + index) % world.workers.length);
    return places.map((one) => world.workers[one]).find((worker) => worker && !worker.stopped);
  }

  /** Leaves the worker's place. */
  function leave(worker: Worker): number {
    const place = world.workers.indexOf(worker);
    world.workers[place] = undefined;
    return place;
  }

  async function killed(worker: Worker, watched: boolean): Promise<void> {
    const orphans = await attemptList(() => failOvers.ownedBy(worker));
    const place = leave(worker);
    const at = Date.now();
    await worker.end('SIGKILL');
    failOvers.expect({ cause: 'kill', at, watched, orphans });
    if (watched) await failOvers.settled(orphans);
    world.start(place);
  }

  async function stalled(worker: Worker, milliseconds: number, watched: boolean): Promise<string> {
    const orphans = options.ownership === 'lease' ? await attemptList(() => failOvers.ownedBy(worker)) : [];
    const at = Date.now();
    worker.signal('SIGSTOP');
    failOvers.expect({ cause: 'stall', at, watched, orphans });
    const wake = pause(milliseconds).then(() => (worker.stopped ? worker.signal('SIGCONT') : undefined));
    last(wake);
    if (watched) await Promise.race([failOvers.settled(orphans), wake]);
    return `${worker.name} for ${Math.round(milliseconds)} ms`;
  }

  async function ended(worker: Worker): Promise<number> {
    const place = leave(worker);
    const problem = await worker.end('SIGTERM');
    if (problem !== undefined)
      world.incidents.push(`${worker.name} ${problem}. The last it said:\n${worker.said.slice(-20).join('\n')}`);
    return place;
  }

  async function cutSessions(share: number, draw: number): Promise<number> {
    const rows = await db.query<{ ended: boolean }>({
      text: `
        select pg_terminate_backend(pid) as ended
        from pg_stat_activity
        where datname = current_database()
          and application_name <> 'chaos'
          and pid <> pg_backend_pid()
          and abs(hashint4(pid) % 1000) / 1000.0 + $2::float8 between 0 and $1::float8`,
      values: [share, draw * (1 - share)],
    });
    return rows.length;
  }

  async function appendSlowly(seconds: number, commits: boolean): Promise<void> {
    const draft = draftAppend(seeded(options.seed + Math.round(seconds * 1e6)));
    const entry = beginEntry(world.ledger, -1, draft);
    const rolledBack = new Error('rolled back');
    try {
      await db.transaction(async (tx) => {
        // One that knows nothing of the inline projection has it leave the appends for a while.
        const by = seconds < 1 ? stranger : log;
        const { events } = await by.appendToStreams({ streams: streamsOf(draft, entry.append, 'any') }, tx);
        await pause(seconds * 1_000);
        if (!commits) throw rolledBack;
        entry.positions = events.map(({ position }) => position);
      });
      entry.outcome = 'acknowledged';
    } catch (error) {
      entry.outcome = error === rolledBack ? 'refused' : 'unknown';
      if (error !== rolledBack && !isAway(error)) throw error;
    }
  }

  async function operate(action: Action & { readonly draw: number }): Promise<string> {
    const { draw } = action;
    const maintained = (await readRegistry(db)).filter(({ state }) => state !== 'retired');
    switch (action.kind) {
      case 'rebuild': {
        const { name, version } = pick(maintained, draw);
        await requestRebuild(db, projectionOf(name, version), readSchema, by);
        return `${name}@${version}`;
      }
      case 'rebuild in place': {
        const { name, version } = pick(maintained.filter(withoutHealed), draw);
        await rebuildInPlace({ db, log, readSchema, projection: projectionOf(name, version) }, by);
        return `${name}@${version}`;
      }
      case 'take a snapshot': {
        const { name, version } = pick(maintained.filter(withoutHealed), draw);
        const { id } = await takeSnapshot({ db, readSchema, name, version }, by);
        const [, , oldest] = await listSnapshots(db, name, version);
        if (oldest) await dropSnapshot(db, name, version, oldest.id, by);
        return `${name}@${version}: ${id}`;
      }
      case 'rebuild from a snapshot': {
        const { id, name, version } = pick(await listSnapshots(db), draw);
        const projection = projectionOf(name, version);
        if (action.inPlace) await rebuildInPlace({ db, log, readSchema, projection }, by, { id });
        else await requestRebuild(db, projection, readSchema, by, { log, snapshot: { id } });
        return `${name}@${version} from ${id}`;
      }
      case 'cancel a rebuild': {
        const { name, version } = pick(await readRebuilds(db), draw);
        await cancelRebuild(db, name, version, readSchema, by);
        return `${name}@${version}`;
      }
      case 'activate': {
        const { name, version } = pick(
          maintained.filter(({ state }) => state === 'ready'),
          draw,
        );
        await lifecycle.activate(name, version, by);
        return `${name}@${version}`;
      }
      case 'roll back': {
        const { from, to } = await lifecycle.rollback('balance', by);
        return `balance@${from} → balance@${to}`;
      }
      case 'retire':
        return retire(maintained);
      case 'retry dead letters':
      case 'discard dead letters':
        return redeliver(action.kind, draw, 'mended' in action && action.mended === true);
      default:
        throw new Error(`'${action.kind}' is no operation.`);
    }
  }

  /** The lowest version, where a higher one can take its place everywhere. */
  async function retire(maintained: readonly RegisteredVersion[]): Promise<string> {
    const active = maintained.filter(({ name, state }) => name === 'balance' && state === 'active');
    const lowest = maintained.find(({ name }) => name === 'balance');
    if (!lowest || !active.some(({ version }) => version > lowest.version)) return 'nothing could take its place';
    await lifecycle.retire('balance', lowest.version, by, graceSeconds);
    world.lowest = lowest.version + 1;
    return `balance@${lowest.version}`;
  }

  /** The row of one letter, or all. The name of the session tells the judges what was done. */
  async function redeliver(kind: 'retry dead letters' | 'discard dead letters', draw: number, mended: boolean) {
    const letters = await listDeadLetters({ db, log, readSchema, projection: credits });
    const key = draw < 0.2 ? undefined : JSON.stringify(pick(letters, draw).key);
    const session = createDatabase({
      url: world.url,
      maxConnections: 1,
      applicationName: kind === 'discard dead letters' ? 'chaos discards' : 'chaos retries',
    });
    try {
      const redelivery = { db: session, log, readSchema, projection: mended ? mendedCredits : credits };
      const done = await (kind === 'discard dead letters'
        ? discardDeadLetters(redelivery, by, key)
        : retryDeadLetters(redelivery, by, key));
      return `${key ?? 'all'}: ${done.folded} folded, ${done.discarded} discarded, ${done.left} left`;
    } finally {
      await session.close();
    }
  }

  return {
    perform,
    async ended() {
      await until(() => lasting.size === 0);
      await world.started();
    },
  };
}

/** What an operator would be told. A fault under way may make it fail; what must not be is found in what is there afterwards. */
async function attempt(work: () => Promise<string>): Promise<string> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NothingToDo) return 'nothing to do it with';
    // 55P03: a reader of the stable view was in the way for too long.
    const refused =
      error instanceof RefoldError && (error.code === 'INVALID_TRANSITION' || sqlStateOf(error) === '55P03');
    if (refused || isAway(error)) return `refused: ${(error as RefoldError).message}`; // as both say
    throw error;
  }
}

async function attemptList<T>(work: () => Promise<readonly T[]>): Promise<readonly T[]> {
  return work().catch((error: unknown) => {
    if (isAway(error)) return [];
    throw error;
  });
}

/** A retry with mended code is seen in the table that it was made in: rebuilt by the code that fails, the same events fail again. */
function withoutHealed({ name }: RegisteredVersion): boolean {
  return name !== credits.name;
}

class NothingToDo extends Error {}

function pick<T>(among: readonly T[], draw: number): T {
  const picked = among[Math.floor(draw * among.length)];
  if (picked === undefined) throw new NothingToDo();
  return picked;
}
