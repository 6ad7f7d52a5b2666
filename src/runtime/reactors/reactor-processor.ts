import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { globalPosition } from '../../events/global-position.ts';
import type { HandlerResult, Reactor } from '../../reactors/reactor.ts';
import { pauseBeforeRetry } from '../../reactors/retry-rules.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { insertReactorLetter, readParkedKeys } from '../../store/reactors/reactor-letters.ts';
import { advanceReactor } from '../../store/reactors/reactors.ts';
import type { EventPage } from '../consumers/event-source.ts';
import { letterError } from '../dead-letters/dead-letters.ts';
import type { MaintainedProcessor } from '../processors/maintained-unit.ts';
import { createSignal } from '../scheduling/signal.ts';
import { type ReactionOptions, react, reactionFailure } from './reaction.ts';
import { redeliverKey } from './redeliver-key.ts';

export interface ReactorProcessorOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly reactor: Reactor;
  readonly claim: ProcessorClaim;
  /** How long a stop waits for running handlers, in milliseconds. */
  readonly grace: number;
  readonly logger: Logger;
}

export interface ReactorProcessor extends MaintainedProcessor {
  /** Handles the dead letters of these keys, as their rows request. */
  redeliver(keys: readonly string[]): void;
}

/** An event that the processor has accepted and that is still above the checkpoint. */
interface Task {
  readonly event: RecordedEvent;
  readonly key: string;
  /** Set if the key function threw. */
  readonly keyError: { readonly error: unknown } | undefined;
  state: 'waiting' | 'running' | 'pausing' | 'done';
  attempts: number;
}

// The most events above the checkpoint. It limits what a crash has handled again, and how far other events run ahead of one that
// is retried.
const mostInWork = 1000;
// Milliseconds after the grace period for the database to finish writing a dead letter.
const lastMoments = 1000;

/**
 * Passes a reactor's events to its handlers: events of one key in order, keys concurrently up to the declared number. Everything up to the
 * checkpoint is handled, skipped or stored as a dead letter. The checkpoint is written under the fence of the owner's epoch.
 */
export async function createReactorProcessor(options: ReactorProcessorOptions): Promise<ReactorProcessor> {
  const { db, log, reactor, claim, logger } = options;
  const parked = await readParkedKeys(db, reactor.name);
  const inWork: Task[] = [];
  const redeliveries = new Set<string>();
  const busyKeys = new Set<string>();
  const pauses = new Set<NodeJS.Timeout>();
  const moved = createSignal();
  const abandoned = new AbortController();
  const reaction: ReactionOptions = { reactor, db, log, logger, signal: abandoned.signal };
  const ended = Promise.withResolvers<void>();
  ended.promise.catch(() => {}); // a rejection is reported to those who await it, and must not be unhandled otherwise
  let running = 0;
  let reached = claim.checkpoint;
  let checkpoint = claim.checkpoint;
  let handled = 0;
  let skipped = 0;
  let unsettled = false;
  let writing: Promise<void> | undefined;
  let leaving = false;
  let left: Promise<void> | undefined;
  let failure: RefoldError | null = null;

  async function process(page: EventPage): Promise<'continue' | 'stop'> {
    for (const event of page.events) {
      while (inWork.length >= mostInWork && !leaving) await moved.next();
      if (leaving) return 'stop';
      inWork.push(newTask(event));
      reached = event.position;
      schedule();
    }
    reached = page.upTo;
    settle();
    return leaving ? 'stop' : 'continue';
  }

  function newTask(event: RecordedEvent): Task {
    try {
      return { event, key: reactor.keyOf(event), keyError: undefined, state: 'waiting', attempts: 0 };
    } catch (error) {
      const key = `${event.family}/${event.streamId}`;
      return { event, key, keyError: { error }, state: 'waiting', attempts: 0 };
    }
  }

  /** Starts what can start, in the order of the log. */
  function schedule(): void {
    if (leaving) return;
    for (const key of redeliveries) {
      if (running >= reactor.concurrency) return;
      if (busyKeys.has(key)) continue;
      redeliveries.delete(key);
      start(key, () => redeliverParked(key));
    }
    const blocked = new Set(busyKeys);
    for (const task of inWork) {
      if (running >= reactor.concurrency) return;
      if (task.state === 'done' || blocked.has(task.key)) continue;
      blocked.add(task.key);
      if (task.state === 'waiting') start(task.key, () => attempt(task));
    }
  }

  function start(key: string, work: () => Promise<void>): void {
    running++;
    busyKeys.add(key);
    void work()
      .catch(end)
      .finally(() => {
        running--;
        busyKeys.delete(key);
        settle();
        schedule();
        moved.fire();
      });
  }

  async function attempt(task: Task): Promise<void> {
    const { event, key } = task;
    task.state = 'running';
    const firstParked = parked.get(key);
    if (firstParked !== undefined) {
      // Events before the first dead letter of their key were handled before a crash.
      if (event.position >= firstParked) await keepLetter(task, null);
      task.state = 'done';
      return;
    }
    task.attempts++;
    const outcome = task.keyError
      ? { kind: 'failed' as const, ...task.keyError }
      : await react(reaction, event, task.attempts);
    switch (outcome.kind) {
      case 'handled':
        return done(task, outcome.result);
      case 'failed':
        return failed(task, outcome.error);
      case 'given-up':
        task.state = 'waiting';
    }
  }

  function done(task: Task, result: HandlerResult): void {
    task.state = 'done';
    if (result === 'skip') skipped++;
    else handled++;
    if (result !== 'stop') return;
    const { name } = reactor;
    const { type, position } = task.event;
    end(
      new RefoldError(
        'REACTION_FAILED',
        `${name}: its handler of '${type}' returned 'stop' at position ${position}. To continue with the next event, run 'refold reactor resume ${name}'.`,
        { reactor: name, position: position.toString() },
      ),
    );
  }

  async function failed(task: Task, error: unknown): Promise<void> {
    const { event, key, attempts } = task;
    const pause = pauseBeforeRetry(reactor.retries, error, attempts, Math.random());
    if (pause !== undefined) {
      const message = `${reactor.name}: '${event.type}' at position ${event.position} failed, trying again in ${Math.round(pause)} ms`;
      logger.warn({ reactor: reactor.name, event: event.id, attempt: attempts, err: error }, message);
      pauseTask(task, pause);
      return;
    }
    const described = reactionFailure(reactor, event, error, attempts);
    switch (reactor.policy) {
      case 'stop':
        task.state = 'waiting';
        return end(described);
      case 'skip':
        await reactor.onSkip?.({ event, error, attempts });
        logger.warn({ reactor: reactor.name, event: event.id, err: error }, `left out: ${described.message}`);
        skipped++;
        break;
      case 'dead-letter':
        await keepLetter(task, described);
        parked.set(key, event.position);
        logger.error(
          { reactor: reactor.name, event: event.id, err: error },
          `kept as a dead letter: ${described.message}`,
        );
    }
    task.state = 'done';
  }

  function pauseTask(task: Task, milliseconds: number): void {
    task.state = 'pausing';
    const timer = setTimeout(() => {
      pauses.delete(timer);
      task.state = 'waiting';
      schedule();
    }, milliseconds);
    pauses.add(timer);
  }

  function keepLetter({ event, key, attempts }: Task, error: RefoldError | null): Promise<void> {
    const { position, type, streamId } = event;
    return insertReactorLetter(db, claim, {
      position,
      key,
      type,
      streamId,
      attempts,
      error: error && letterError(error),
    });
  }

  async function redeliverParked(key: string): Promise<void> {
    const first = await redeliverKey({ ...reaction, db, claim }, key);
    if (first === undefined) parked.delete(key);
    else parked.set(key, first);
  }

  /** Moves the checkpoint up to the first event that is not done. One statement runs at a time and covers everything done meanwhile. */
  function settle(): void {
    while (inWork[0]?.state === 'done') inWork.shift();
    unsettled = true;
    writing ??= (async () => {
      try {
        while (unsettled) {
          unsettled = false;
          await write();
        }
      } catch (error) {
        end(error);
      } finally {
        writing = undefined;
      }
    })();
  }

  async function write(): Promise<void> {
    const first = inWork.find(({ state }) => state !== 'done');
    const to = first ? globalPosition(first.event.position - 1n) : reached;
    if (to <= checkpoint) return;
    const counts = { handled, skipped };
    handled = 0;
    skipped = 0;
    await advanceReactor(db, claim, { from: checkpoint, to, ...counts });
    checkpoint = to;
  }

  /** Ends the processor, because of an event or of the database. */
  function end(error: unknown): void {
    if (error instanceof RefoldError && error.code === 'REACTION_FAILED') {
      failure ??= error;
      void flush().then(ended.resolve);
    } else {
      abandoned.abort(error);
      void leave().then(() => ended.reject(error));
    }
  }

  async function flush(): Promise<void> {
    await leave();
    settle();
    await writing;
  }

  /** Starts nothing new and waits for running handlers. Resolves in bounded time. */
  function leave(): Promise<void> {
    leaving = true;
    left ??= (async () => {
      for (const timer of pauses) clearTimeout(timer);
      moved.fire();
      const timers: NodeJS.Timeout[] = [];
      const expired = new Promise<void>((resolve) => {
        timers.push(setTimeout(() => abandoned.abort(leftBehind(reactor)), options.grace));
        timers.push(setTimeout(resolve, options.grace + lastMoments));
      });
      const quiet = (async () => {
        while (running > 0) await moved.next();
      })();
      await Promise.race([quiet, expired]);
      for (const timer of timers) clearTimeout(timer);
    })();
    return left;
  }

  return {
    id: reactor.name,
    filter: reactor.filter,
    checkpoint: claim.checkpoint,
    process,
    ended: ended.promise,
    get failure() {
      return failure;
    },
    interrupt(lost) {
      if (lost !== undefined) abandoned.abort(lost);
      return leave();
    },
    flush,
    redeliver(keys) {
      for (const key of keys) redeliveries.add(key);
      schedule();
    },
  };
}

function leftBehind(reactor: Reactor): Error {
  return new Error(`${reactor.name}: the process stops, and the time that it waits for running handlers is over.`);
}
