import type { Logger } from 'pino';
import type { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { BegunReactor } from '../../reactors/begun-reactor.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { readReactorAttempts } from '../../store/reactors/reactor-attempts.ts';
import { readBlockedKeys } from '../../store/reactors/reactor-letters.ts';
import { withoutTraps } from '../../thrown.ts';
import type { EventPage } from '../consumers/event-source.ts';
import type { MaintainedProcessor } from '../processors/maintained-unit.ts';
import { withinGrace } from '../scheduling/grace.ts';
import { createSignal } from '../scheduling/signal.ts';
import { type AttemptOptions, applyPolicy, attempt, keepLetter } from './attempt.ts';
import { AttemptLog } from './attempt-log.ts';
import { isStop, leftBehind, stopRequested } from './reaction.ts';
import { ReactorCheckpoint } from './reactor-checkpoint.ts';
import { type ReactorTask, reactorTask, readablePart } from './reactor-task.ts';
import { BlockedKeys } from './redeliver-key.ts';
import { WaitingEvents } from './waiting-events.ts';

export interface ReactorProcessorOptions extends Pick<AttemptOptions, 'pace'> {
  readonly db: Database;
  readonly log: EventLog;
  readonly reactor: BegunReactor;
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

/**
 * Passes a reactor's events to its handlers: events of one key in order, keys concurrently up to the declared number. Everything up to the
 * checkpoint is handled, skipped or stored as a dead letter. The checkpoint is written under the fence of the owner's epoch.
 */
export async function createReactorProcessor(options: ReactorProcessorOptions): Promise<ReactorProcessor> {
  const { db, claim, processId, reactor } = options;
  const attempts = new AttemptLog({ db, claim, processId }, await readReactorAttempts(db, claim, processId));
  const blockedKeys = new BlockedKeys(await readBlockedKeys(db, reactor.name));
  return new KeyedReactions(options, attempts, blockedKeys, await WaitingEvents.open(options));
}

class KeyedReactions implements ReactorProcessor {
  readonly #options: ReactorProcessorOptions;
  readonly #reaction: Omit<AttemptOptions, 'reactor'>;
  readonly #checkpoint: ReactorCheckpoint;
  readonly #attempts: AttemptLog;
  readonly #blockedKeys: BlockedKeys;
  readonly #waiting: WaitingEvents;
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

  constructor(options: ReactorProcessorOptions, attempts: AttemptLog, blocked: BlockedKeys, waiting: WaitingEvents) {
    const { db, log, claim, logger, pace } = options;
    this.#options = options;
    this.#attempts = attempts;
    this.#blockedKeys = blocked;
    this.#waiting = waiting;
    this.#checkpoint = new ReactorCheckpoint({ db, claim, onError: (error) => this.#end(error) });
    this.#reaction = { db, log, waits: waiting, logger, pace, signal: this.#abandoned.signal, attempts };
    this.#ended.promise.catch(() => {}); // a rejection is reported to those who await it, and must not be unhandled otherwise
    waiting.listen({ onWoken: () => this.#schedule(), onError: (error) => this.#end(error) });
    this.#schedule();
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
    const { reactor, claim } = this.#options;
    const { events, upTo, end } = readablePart(page, reactor, reactor.endAfter(claim.checkpoint));
    try {
      // Before the checkpoint can pass them.
      await this.#waiting.read(events, upTo);
    } catch (error) {
      this.#end(error);
      return 'stop';
    }
    for (const event of events) {
      while (this.#checkpoint.tasks.length >= maxInWork && !this.#leaving) await this.#moved.next();
      if (this.#leaving) return 'stop';
      const task = reactorTask(reactor, event);
      if (!task) continue;
      this.#checkpoint.accept(task);
      this.#schedule();
    }
    this.#checkpoint.reach(upTo);
    this.#checkpoint.settle();
    if (end) {
      await this.#untilIdle(); // except events that wait for a retry
      if (!this.#leaving) this.#end(end.error);
    }
    return this.#leaving ? 'stop' : 'continue';
  }

  async #untilIdle(): Promise<void> {
    while (this.#busyKeys.size > 0) await this.#moved.next();
  }

  redeliver(keys: readonly string[]): void {
    this.#blockedKeys.request(keys);
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
    for (const key of this.#blockedKeys.requested) {
      if (this.#busyKeys.size >= concurrency) return;
      if (this.#busyKeys.has(key)) continue;
      this.#blockedKeys.take(key);
      this.#start(key, () => this.#redeliverKey(key));
    }
    for (const [position, key] of this.#waiting.woken) {
      if (this.#busyKeys.size >= concurrency) return;
      if (this.#busyKeys.has(key) || this.#checkpoint.isPending(position)) continue;
      this.#start(key, () => this.#resume(position, key));
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
      .catch((error: unknown) => this.#end(withoutTraps(error)))
      .finally(() => {
        this.#busyKeys.delete(key);
        this.#checkpoint.settle();
        this.#schedule();
        this.#moved.fire();
      });
  }

  /** Handles an event again whose wait is over. Later events of its key went on meanwhile, and do not wait for it now. */
  async #resume(position: GlobalPosition, key: string): Promise<void> {
    const reactor = this.#options.reactor.at(position);
    if (!reactor) return this.#end(this.#options.reactor.unknownAt(position));
    const event = await this.#waiting.take(position);
    if (event) await this.#handle({ event, reactor, key, keyError: undefined, isResumed: true, state: 'running' });
  }

  async #attempt(task: ReactorTask): Promise<void> {
    const { event, key } = task;
    task.state = 'running';
    if (!this.#blockedKeys.isBlocked(key)) return this.#handle(task);
    if (this.#blockedKeys.isBehind(key, event.position)) await keepLetter(this.#options, task, null);
    task.state = 'done';
  }

  async #handle(task: ReactorTask): Promise<void> {
    const { position } = task.event;
    const outcome = await attempt({ ...this.#reaction, reactor: task.reactor }, task);
    switch (outcome.kind) {
      case 'handled':
        await this.#count(task, outcome.result === 'skip' ? 'skipped' : 'handled');
        if (outcome.result === 'stop') this.#end(stopRequested(task.reactor, task.event));
        return;
      case 'suspended':
        task.state = 'done';
        return this.#waiting.rests(position);
      case 'retry':
        task.state = 'pausing';
        return this.#after(outcome.pause, () => {
          task.state = 'waiting';
          if (task.isResumed) this.#waiting.wake(position, task.key);
        });
      case 'unreadable':
        return this.#endAt(task, outcome.error);
      case 'failed':
        return this.#applyPolicy(task, outcome);
      case 'given-up':
        task.state = 'waiting';
    }
  }

  /** The event is done. A stored wait is deleted and counted with it, before the checkpoint can pass the event. */
  async #count(task: ReactorTask, as: 'handled' | 'skipped'): Promise<void> {
    const { position } = task.event;
    if (task.isResumed || this.#waiting.has(position)) await this.#waiting.finish(position, as);
    else this.#checkpoint.count(as);
    task.state = 'done';
  }

  async #applyPolicy(task: ReactorTask, failed: { error: unknown; attempts: number }): Promise<void> {
    const { position } = task.event;
    const { policy, described } = await applyPolicy(this.#options, task, failed);
    if (policy === 'stop') return this.#endAt(task, described);
    if (policy === 'skip') await this.#count(task, 'skipped');
    else {
      this.#blockedKeys.block(task.key, position);
      this.#waiting.leave(position);
    }
    task.state = 'done';
    this.#attempts.forget(position);
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

  async #redeliverKey(key: string): Promise<void> {
    const { db, claim, reactor } = this.#options;
    const options = { ...this.#reaction, reactor, db, claim, waiting: this.#waiting };
    const later = await this.#blockedKeys.redeliver(options, key);
    if (later) this.#after(later.pause, later.resume);
  }

  #endAt(task: ReactorTask, error: RefoldError): void {
    task.state = 'waiting';
    this.#end(error);
  }

  /** Ends the processor, because of an event or of the database. */
  #end(error: unknown): void {
    if (isStop(error)) {
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
    const quiet = Promise.all([this.#untilIdle(), this.#waiting.close()]);
    await withinGrace(quiet, grace, () => this.#abandoned.abort(leftBehind(reactor)));
  }
}
