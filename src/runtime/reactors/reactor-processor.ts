import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isVersionUnknown, unreadable } from '../../events/read-payload.ts';
import type { HandlerResult, Reactor } from '../../reactors/reactor.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { type EventAttempts, readReactorAttempts } from '../../store/reactors/reactor-attempts.ts';
import { insertReactorLetter, readBlockedKeys } from '../../store/reactors/reactor-letters.ts';
import type { EventPage } from '../consumers/event-source.ts';
import { letterError } from '../dead-letters/dead-letters.ts';
import type { MaintainedProcessor } from '../processors/maintained-unit.ts';
import { createSignal } from '../scheduling/signal.ts';
import { type AttemptOptions, attempt } from './attempt.ts';
import { AttemptLog } from './attempt-log.ts';
import { leftBehind, reactionFailure, stopRequested } from './reaction.ts';
import { ReactorCheckpoint } from './reactor-checkpoint.ts';
import { type ReactorTask, reactorTask } from './reactor-task.ts';
import { redeliverKey } from './redeliver-key.ts';

export interface ReactorProcessorOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly reactor: Reactor;
  readonly claim: ProcessorClaim;
  /** Identifies this process among those that own the reactor one after the other. */
  readonly processId: string;
  /** How long a stop waits for running handlers, in milliseconds. */
  readonly grace: number;
  readonly logger: Logger;
}

export interface ReactorProcessor extends MaintainedProcessor {
  /** Handles the dead letters of these keys, as their rows request. */
  redeliver(keys: readonly string[]): void;
}

// The most events above the checkpoint. It limits what a crash repeats, and how far others run ahead of one that is retried.
const maxInWork = 1000;
// Milliseconds after the grace period for the database to finish writing a dead letter.
const lastMoments = 1000;

/**
 * Passes a reactor's events to its handlers: events of one key in order, keys concurrently up to the declared number. Everything up to the
 * checkpoint is handled, skipped or stored as a dead letter. The checkpoint is written under the fence of the owner's epoch.
 */
export async function createReactorProcessor(options: ReactorProcessorOptions): Promise<ReactorProcessor> {
  const { db, claim, processId, reactor } = options;
  const attempts = await readReactorAttempts(db, claim, processId);
  return new KeyedReactions(options, await readBlockedKeys(db, reactor.name), attempts);
}

class KeyedReactions implements ReactorProcessor {
  readonly #options: ReactorProcessorOptions;
  readonly #reaction: AttemptOptions;
  readonly #checkpoint: ReactorCheckpoint;
  readonly #attempts: AttemptLog;
  /** The position of the first dead letter of each blocked key. */
  readonly #blockedKeys: Map<string, GlobalPosition>;
  readonly #redeliveries = new Set<string>();
  /** The keys whose first dead letter waits for its next attempt. */
  readonly #pausedKeys = new Set<string>();
  /** The keys of which an event is handled now, one each. */
  readonly #busyKeys = new Set<string>();
  readonly #pauses = new Set<NodeJS.Timeout>();
  /** Fired when a handler has finished, and when the processor leaves. */
  readonly #moved = createSignal();
  readonly #abandoned = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #leaving = false;
  #left: Promise<void> | undefined;
  #failure: RefoldError | null = null;

  constructor(
    options: ReactorProcessorOptions,
    blockedKeys: Map<string, GlobalPosition>,
    attempts: readonly EventAttempts[],
  ) {
    const { db, log, reactor, claim, processId, logger } = options;
    this.#options = options;
    this.#blockedKeys = blockedKeys;
    this.#checkpoint = new ReactorCheckpoint({ db, claim, onError: (error) => this.#end(error) });
    this.#attempts = new AttemptLog({ db, claim, processId }, attempts);
    this.#reaction = { reactor, db, log, logger, signal: this.#abandoned.signal, attempts: this.#attempts };
    this.#ended.promise.catch(() => {}); // a rejection is reported to those who await it, and must not be unhandled otherwise
  }

  get id() {
    return this.#options.reactor.name;
  }

  get filter() {
    return this.#options.reactor.filter;
  }

  get checkpoint() {
    return this.#options.claim.checkpoint;
  }

  get ended() {
    return this.#ended.promise;
  }

  get failure() {
    return this.#failure;
  }

  async process(page: EventPage): Promise<'continue' | 'stop'> {
    for (const event of page.events) {
      while (this.#checkpoint.tasks.length >= maxInWork && !this.#leaving) await this.#moved.next();
      if (this.#leaving) return 'stop';
      const unread = unreadable(event);
      if (isVersionUnknown(unread)) {
        this.#checkpoint.reach(globalPosition(event.position - 1n));
        await this.#untilIdle(); // except events that wait for a retry
        if (!this.#leaving) this.#end(unread);
        return 'stop';
      }
      this.#checkpoint.accept(reactorTask(this.#options.reactor, event));
      this.#schedule();
    }
    this.#checkpoint.reach(page.upTo);
    this.#checkpoint.settle();
    return this.#leaving ? 'stop' : 'continue';
  }

  async #untilIdle(): Promise<void> {
    while (this.#busyKeys.size > 0) await this.#moved.next();
  }

  redeliver(keys: readonly string[]): void {
    for (const key of keys) if (!this.#pausedKeys.has(key)) this.#redeliveries.add(key);
    this.#schedule();
  }

  interrupt(lost?: unknown): Promise<void> {
    if (lost !== undefined) this.#abandoned.abort(lost);
    return this.#leave();
  }

  async flush(): Promise<void> {
    await this.#leave();
    this.#checkpoint.settle();
    await this.#checkpoint.written();
    await this.#attempts.flush();
  }

  /** Starts what can start, in the order of the log. */
  #schedule(): void {
    if (this.#leaving) return;
    const { concurrency } = this.#options.reactor;
    for (const key of this.#redeliveries) {
      if (this.#busyKeys.size >= concurrency) return;
      if (this.#busyKeys.has(key)) continue;
      this.#redeliveries.delete(key);
      this.#start(key, () => this.#redeliverKey(key));
    }
    const blocked = new Set(this.#busyKeys);
    for (const task of this.#checkpoint.tasks) {
      if (this.#busyKeys.size >= concurrency) return;
      if (task.state === 'done' || blocked.has(task.key)) continue;
      blocked.add(task.key);
      if (task.state === 'waiting') this.#start(task.key, () => this.#attempt(task));
    }
  }

  #start(key: string, work: () => Promise<void>): void {
    this.#busyKeys.add(key);
    void work()
      .catch((error: unknown) => this.#end(error))
      .finally(() => {
        this.#busyKeys.delete(key);
        this.#checkpoint.settle();
        this.#schedule();
        this.#moved.fire();
      });
  }

  async #attempt(task: ReactorTask): Promise<void> {
    const { event, key } = task;
    task.state = 'running';
    const firstBlocked = this.#blockedKeys.get(key);
    if (firstBlocked !== undefined) {
      // Events before the first dead letter of their key were handled before a crash.
      if (event.position >= firstBlocked) await this.#moveToDeadLetters(task, null);
      task.state = 'done';
      return;
    }
    const outcome = await attempt(this.#reaction, task);
    switch (outcome.kind) {
      case 'handled':
        return this.#done(task, outcome.result);
      case 'retry':
        task.state = 'pausing';
        return this.#after(outcome.pause, () => (task.state = 'waiting'));
      case 'unreadable':
        return this.#endAt(task, outcome.error);
      case 'failed':
        return this.#applyPolicy(task, outcome);
      case 'given-up':
        task.state = 'waiting';
    }
  }

  #done(task: ReactorTask, result: HandlerResult): void {
    task.state = 'done';
    this.#checkpoint.count(result === 'skip' ? 'skipped' : 'handled');
    if (result === 'stop') this.#end(stopRequested(this.#options.reactor, task.event));
  }

  async #applyPolicy(task: ReactorTask, { error, attempts }: { error: unknown; attempts: number }): Promise<void> {
    const { reactor, logger } = this.#options;
    const { event } = task;
    const described = reactionFailure(reactor, event, error, attempts);
    const fields = { reactor: reactor.name, event: event.id, err: error };
    switch (reactor.policy) {
      case 'stop':
        return this.#endAt(task, described);
      case 'skip':
        await reactor.onSkip?.({ event, error, attempts });
        logger.warn(fields, `left out: ${described.message}`);
        this.#checkpoint.count('skipped');
        break;
      case 'dead-letter':
        await this.#moveToDeadLetters(task, described, attempts);
        this.#blockedKeys.set(task.key, event.position);
        logger.error(fields, `kept as a dead letter: ${described.message}`);
    }
    task.state = 'done';
    this.#attempts.forget(event.position);
    await this.#attempts.flush();
  }

  #after(milliseconds: number, resume: () => void): void {
    if (this.#leaving) return;
    const timer = setTimeout(() => {
      this.#pauses.delete(timer);
      resume();
      this.#schedule();
    }, milliseconds);
    this.#pauses.add(timer);
  }

  #moveToDeadLetters({ event, key }: ReactorTask, error: RefoldError | null, attempts = 0): Promise<void> {
    const { db, claim } = this.#options;
    const { position, type, streamId } = event;
    const letter = { position, key, type, streamId, attempts, error: error && letterError(error) };
    return insertReactorLetter(db, claim, letter);
  }

  async #redeliverKey(key: string): Promise<void> {
    const { db, claim } = this.#options;
    const { first, pause } = await redeliverKey({ ...this.#reaction, db, claim }, key);
    if (first === undefined) this.#blockedKeys.delete(key);
    else this.#blockedKeys.set(key, first);
    if (pause === undefined) return;
    this.#pausedKeys.add(key);
    this.#after(pause, () => {
      this.#pausedKeys.delete(key);
      this.#redeliveries.add(key);
    });
  }

  #endAt(task: ReactorTask, error: RefoldError): void {
    task.state = 'waiting';
    this.#end(error);
  }

  /** Ends the processor, because of an event or of the database. */
  #end(error: unknown): void {
    if (error instanceof RefoldError && (error.code === 'REACTION_FAILED' || isVersionUnknown(error))) {
      this.#failure ??= error;
      void this.flush().then(this.#ended.resolve);
    } else {
      this.#abandoned.abort(error);
      void this.#leave().then(() => this.#ended.reject(error));
    }
  }

  /** Starts nothing new and waits for running handlers. Resolves in bounded time. */
  #leave(): Promise<void> {
    this.#leaving = true;
    this.#left ??= this.#untilQuiet();
    return this.#left;
  }

  async #untilQuiet(): Promise<void> {
    const { reactor, grace } = this.#options;
    for (const timer of this.#pauses) clearTimeout(timer);
    this.#moved.fire();
    const timers: NodeJS.Timeout[] = [];
    const expired = new Promise<void>((resolve) => {
      timers.push(setTimeout(() => this.#abandoned.abort(leftBehind(reactor)), grace));
      timers.push(setTimeout(resolve, grace + lastMoments));
    });
    await Promise.race([this.#untilIdle(), expired]);
    for (const timer of timers) clearTimeout(timer);
  }
}
