import { setTimeout as pause } from 'node:timers/promises';
import { createEventLog } from '../src/store/event-log.ts';
import type { Database } from '../src/store/postgres/database.ts';
import { seeded } from '../test/support/account-traffic.ts';
import type { TcpProxy } from '../test/support/tcp-proxy.ts';
import { until } from '../test/support/until.ts';
import { apart } from './apart.ts';
import { families } from './domain.ts';
import { draftAppend } from './drafts.ts';
import type { FailOvers } from './fail-overs.ts';
import { holdStream } from './held-streams.ts';
import { acknowledge } from './ledger.ts';
import { type FaultyNetwork, networkFault } from './network-faults.ts';
import { attempt, createOperator } from './operator.ts';
import type { Place } from './place.ts';
import type { Action, At, NetworkOf } from './plan.ts';
import type { AppProcess } from './processes.ts';
import { type Running, wake, withOneOf } from './running.ts';
import { createStoreFaults } from './store-faults.ts';
import { beginEntry, isAway, streamsOf } from './traffic.ts';
import { perform as performTrial } from './trials/trials.ts';
import { positionsIn, whatIsLeft } from './what-is-left.ts';
import type { World } from './world.ts';

export interface Actions {
  /** Performs the action and returns a line about the result. A lasting fault continues while other actions are performed. */
  perform(action: Action): Promise<string>;
  /** Ends the lasting faults, and resolves when everything works again. */
  ended(): Promise<void>;
}

/** A writer whose network is broken may write nothing for this long. */
const maxMsForATail = 10_000;

export function createActions(world: World, failOvers: FailOvers): Actions {
  const { db, stores, log, server, options } = world;
  const operate = createOperator(world);
  const stranger = createEventLog(db, families);
  const lasting = new Set<Promise<void>>();
  const places = [...world.workers, ...world.gateways];
  const networks = new Map<TcpProxy, FaultyNetwork>();

  function last(work: Promise<void>): void {
    const noted = work
      .catch(
        (error: unknown) => void world.incidents.push(error instanceof Error ? String(error.stack) : String(error)),
      )
      .finally(() => {
        lasting.delete(noted);
        failOvers.disturbed(false);
      });
    lasting.add(noted);
  }

  const storeFaults = createStoreFaults({ world, failOvers, last, quiet: ended });

  async function perform(action: Action): Promise<string> {
    const watched = 'watched' in action && action.watched;
    // The bound of a fail-over holds only if processes are running that can take over.
    if (watched) await world.started();
    failOvers.disturbed(watched);
    switch (action.kind) {
      case 'kill':
        return withOneOf(world.workers, action.worker, (running) => killed(running, watched));
      case 'stall':
        return withOneOf(world.workers, action.worker, ({ process }) =>
          stalled(process, action.leases * options.leaseSeconds * 1_000, watched),
        );
      case 'restart':
        return withOneOf(world.workers, action.worker, (running) => restarted(running, world.highest));
      case 'deploy':
        return withOneOf(world.workers, action.worker, (running) => restarted(running, world.highest + 1));
      case 'kill a gateway':
        return withOneOf(world.gateways, action.gateway, async ({ place, process }) => {
          place.leave();
          await end(process, 'SIGKILL');
          return `${process.name} → ${world.start(place)}`;
        });
      case 'restart a gateway':
        return withOneOf(world.gateways, action.gateway, (running) => restarted(running, world.highest));
      case 'freeze':
        return withOneOf(placesOf(action.at), action.at.index, async ({ process }) => {
          process.signal('SIGSTOP');
          last(pause(action.ms).then(() => wake(process)));
          return process.name;
        });
      case 'clock jump':
        return withOneOf(placesOf(action.at), action.at.index, async ({ process }) => {
          process.moveClock(action.ms);
          return process.name;
        });
      case 'delay':
      case 'half-open':
      case 'one-way stall':
      case 'split packets':
      case 'cut after commit': {
        const work = networkFault(networkOf(action.at), action);
        if (work) last(work);
        return '';
      }
      case 'cut sessions':
        return attempt(async () => `${await cutSessions(action)} sessions`);
      case 'restart PostgreSQL':
        await server.restart(action.how);
        return '';
      case 'promote':
        return promoted(0);
      case 'promote without the tail':
        return promoted(action.ms);
      case 'disk full':
        await server.runOutOfDisk(action.ms);
        return '';
      case 'restart the store':
      case 'store away':
      case 'cut off from the store':
        return storeFaults.perform(action);
      case 'append slowly':
        last(appendSlowly(action.seconds, action.commits));
        return '';
      case 'hold a stream':
        await ended();
        return attempt(() => holdStream(world, action.seconds));
      case 'claim values':
      case 'fail for a while':
      case 'a slow event':
      case 'large events':
        return attempt(() => performTrial(action, { world, last, quiet: ended }));
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

  function placesOf({ role }: At): readonly Place[] {
    return role === 'worker' ? world.workers : world.gateways;
  }

  function networkOf(at: NetworkOf): FaultyNetwork {
    const place = at === 'traffic' ? undefined : placesOf(at)[at.index];
    const ofPlace = at !== 'traffic' && at.to === 'store' ? place?.storeNetwork : place?.network;
    const proxy = at === 'traffic' ? world.trafficNetwork : ofPlace?.proxy;
    if (!proxy) throw new Error(`There is no ${JSON.stringify(at)}.`);
    const network = networks.get(proxy) ?? { proxy, healed: new AbortController() };
    networks.set(proxy, network);
    return network;
  }

  async function killed({ place, process }: Running, watched: boolean): Promise<string> {
    const orphans = await attemptList(() => failOvers.ownedBy(process));
    place.leave();
    const at = Date.now();
    await end(process, 'SIGKILL');
    await failOvers.expect({ cause: 'kill', at, watched, orphans });
    return `${process.name} → ${world.start(place)}`;
  }

  async function stalled(process: AppProcess, milliseconds: number, watched: boolean): Promise<string> {
    const orphans = options.ownership === 'lease' ? await attemptList(() => failOvers.ownedBy(process)) : [];
    const at = Date.now();
    process.signal('SIGSTOP');
    const takenOver = failOvers.expect({ cause: 'stall', at, watched, orphans });
    const awake = pause(milliseconds).then(() => wake(process));
    last(awake);
    await Promise.race([takenOver, awake]);
    return `${process.name} for ${Math.round(milliseconds)} ms`;
  }

  async function restarted({ place, process }: Running, highest: number): Promise<string> {
    place.leave();
    await end(process, 'SIGTERM');
    return `${process.name} → ${world.start(place, highest)}, with balance@${world.highest}`;
  }

  async function end(process: AppProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const problem = await process.end(signal);
    if (problem !== undefined)
      world.incidents.push(`${process.name} ${problem}. Its last lines:\n${process.said.slice(-60).join('\n')}`);
  }

  async function promoted(losing: number): Promise<string> {
    // A starting process registers versions. If they were lost with the tail, the process would use versions that the registry lacks.
    await world.started();
    let lost = 0;
    let head = 0n;
    let there: ReadonlySet<bigint> = new Set();
    await server.failOver({
      losing: losing > 0 ? (from) => tailWritten(from, losing) : undefined,
      async promoted({ from, db }) {
        if (losing === 0) return;
        const left = await positionsIn(db);
        head = left.at(-1) ?? 0n;
        there = new Set(left);
        lost = await noteCut(from, db);
        // Two documented limits of cursors. The first: rows that were sent before the cursor had come so far.
        world.clients.beginAnew(({ ahead }) => [...ahead].some((position) => !there.has(position)));
      },
      async former(db) {
        // The second: commits out of the order of their positions, acknowledged or not. Feeds may have resumed by now; their copies are compared
        // only at rest.
        if ((await positionsIn(db)).some((position) => position < head && !there.has(position)))
          world.clients.beginAnew(() => true);
      },
    });
    return losing === 0 ? '' : `${lost} acknowledged appends lost`;
  }

  /** Reads what the new primary has, before anything writes to it. Returns the number of lost appends. */
  async function noteCut(from: number, standby: Database): Promise<number> {
    const { there, head } = await whatIsLeft(standby);
    const lost = world.ledger.entries.filter(
      ({ append, outcome, acknowledgedAt }) =>
        outcome === 'acknowledged' && acknowledgedAt >= from && !there.has(append),
    );
    world.ledger.cut({ from, to: Date.now(), head });
    return lost.length;
  }

  /** Waits until there are appends to lose, or until the time is up because no writer can write. */
  async function tailWritten(from: number, milliseconds: number): Promise<void> {
    const { entries } = world.ledger;
    const latest = from + milliseconds + maxMsForATail;
    await pause(milliseconds);
    await until(
      () => Date.now() > latest || entries.filter(({ acknowledgedAt }) => acknowledgedAt >= from).length >= 5,
    );
  }

  async function cutSessions({ share, draw, of }: Extract<Action, { kind: 'cut sessions' }>): Promise<number> {
    const ofStore = of === 'store' ? stores.stores.of({ store: apart }).db : db;
    const rows = await ofStore.query<{ ended: boolean }>({
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
    const sentAt = Date.now();
    const rolledBack = new Error('rolled back');
    try {
      const positions = await db.transaction(async (tx) => {
        // A writer that does not know the inline projection makes it leave the appends for a while.
        const by = seconds < 1 ? stranger : log;
        const { events } = await by.appendToStreams({ streams: streamsOf(draft, entry.append, 'any') }, tx);
        await pause(seconds * 1_000);
        if (!commits) throw rolledBack;
        return events.map(({ position }) => position);
      });
      acknowledge(entry, positions, sentAt);
    } catch (error) {
      entry.outcome = error === rolledBack ? 'refused' : 'unknown';
      if (error !== rolledBack && !isAway(error)) throw error;
    }
  }

  async function ended(): Promise<void> {
    for (const { proxy, healed } of networks.values()) {
      healed.abort();
      proxy.resume();
    }
    networks.clear();
    storeFaults.heal();
    for (const { process } of places) process?.moveClock(0);
    await until(() => lasting.size === 0);
    await world.started();
  }

  return { perform, ended };
}

async function attemptList<T>(work: () => Promise<readonly T[]>): Promise<readonly T[]> {
  return work().catch((error: unknown) => {
    if (isAway(error)) return [];
    throw error;
  });
}
