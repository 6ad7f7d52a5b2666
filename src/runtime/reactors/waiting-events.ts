import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { awaitedName } from '../../reactors/versioned-reactor.ts';
import { insertAwaitedEvents } from '../../store/reactors/awaited-events.ts';
import { decideWaits, type WaitScope, type WokenInstance } from '../../store/reactors/decide-waits.ts';
import {
  findWait,
  finishInstance,
  readInstance,
  readInstancesToRun,
  storeWait,
  type Wait,
  type WaitOutcome,
} from '../../store/reactors/reactor-instances.ts';
import { stepChanged } from '../commands/execute-step.ts';
import type { Step } from '../commands/step-names.ts';
import { awaitedEvents, storeMissedAwaited, type WaitingEventsOptions } from './awaited-history.ts';
import { DueTimer } from './due-timer.ts';
import type { WaitStore } from './handler-waits.ts';

export interface WaitingEventsListener {
  /** There are woken events. */
  onWoken(): void;
  /** The database failed while no handler or page was concerned. */
  onError(error: unknown): void;
}

// Timers wake no more while so many woken events wait to be handled.
const maxWoken = 1000;

/**
 * The events of a reactor whose handlers wait, and those whose wait is over. The database keeps them; this keeps the positions of the woken ones.
 *
 * A wait is stored first, and looks for an awaited event then. An awaited event is stored first, and looks for waits then. So one of the two sees the
 * other, and whatever a process does not get to, its successor does.
 */
export class WaitingEvents implements WaitStore {
  readonly #options: WaitingEventsOptions;
  readonly #timer: DueTimer;
  /** The ordering keys of the events to handle again, by position. */
  readonly #woken = new Map<GlobalPosition, string>();
  /** Events that have a stored wait and that the log delivers: their end has to delete it. */
  readonly #stored = new Set<GlobalPosition>();
  #listener: WaitingEventsListener | undefined;

  private constructor(options: WaitingEventsOptions) {
    this.#options = options;
    const { db, log, claim, reactor } = options;
    this.#timer = new DueTimer({
      db,
      log,
      claim,
      awaits: reactor.awaits,
      hasRoom: () => this.#woken.size < maxWoken,
      onWoken: (woken) => this.#wake(woken),
      onError: (error) => this.#listener?.onError(error),
    });
  }

  /** Continues from what is stored. Without waits it is one statement. */
  static async open(options: WaitingEventsOptions): Promise<WaitingEvents> {
    const { db, claim } = options;
    const waiting = new WaitingEvents(options);
    if (!(await storeMissedAwaited(options))) return waiting;
    await decideWaits(db, claim, { kind: 'all' });
    for (const { position, key, woken } of await readInstancesToRun(db, claim)) {
      if (position > claim.checkpoint) waiting.#stored.add(position);
      if (woken) waiting.#woken.set(position, key);
    }
    await waiting.#timer.poll();
    return waiting;
  }

  listen(listener: WaitingEventsListener): void {
    this.#listener = listener;
  }

  /** The ordering keys of the events to handle again, by position. */
  get woken(): ReadonlyMap<GlobalPosition, string> {
    return this.#woken;
  }

  /** Returns the woken event, to handle it again. Undefined if it does not wait any more. */
  async take(position: GlobalPosition): Promise<RecordedEvent | undefined> {
    const { db, log, claim, reactor, logger } = this.#options;
    this.#woken.delete(position);
    this.#timer.roomFreed();
    const instance = await readInstance(db, claim, position);
    if (!instance) return undefined;
    const event = await log.readAt(position);
    if (event?.id === instance.eventId) return event;
    logger.warn(
      { reactor: reactor.name, event: instance.eventId },
      `${reactor.name}: the log does not hold the waiting event ${instance.eventId} at position ${position} any more, as after a restore. Its handling is cancelled.`,
    );
    await finishInstance(db, claim, position, 'gone');
    return undefined;
  }

  /** The event is handled again as soon as possible. */
  wake(position: GlobalPosition, key: string): void {
    this.#wake([{ position, key, isDeadLetter: false }]);
  }

  /** A dead letter waits, so it is none any more: its wait may have got its outcome meanwhile. */
  async wakeIfDecided(position: GlobalPosition): Promise<void> {
    const { db, claim } = this.#options;
    const instance = await readInstance(db, claim, position);
    if (instance?.woken) this.wake(position, instance.key);
  }

  /** Whether the event has a stored wait, as far as this process knows. */
  has(position: GlobalPosition): boolean {
    return this.#stored.has(position);
  }

  /** The handler of an event with a stored wait has ended. @throws RefoldError `PROCESSOR_FENCED` */
  async finish(position: GlobalPosition, as: 'handled' | 'skipped'): Promise<void> {
    const { db, claim } = this.#options;
    await finishInstance(db, claim, position, as);
    this.leave(position);
  }

  /** The handler of the event waits. The log does not deliver it again. */
  rests(position: GlobalPosition): void {
    this.#stored.delete(position);
  }

  /** The event is finished, or a dead letter. */
  leave(position: GlobalPosition): void {
    this.#stored.delete(position);
    this.#woken.delete(position);
  }

  /**
   * Stores the awaited ones of the next events of the log, and decides the waits for them. An event whose key can't be computed is left out: it
   * goes the way of an event that can't be handled.
   *
   * @param upTo where these events end in the log
   * @throws RefoldError `PROCESSOR_FENCED` if the reactor has another owner.
   */
  async read(events: readonly RecordedEvent[], upTo?: GlobalPosition): Promise<void> {
    const { db, reactor, claim } = this.#options;
    const awaited = events.flatMap((event) => awaitedEvents(reactor, event));
    if (awaited.length > 0) {
      await insertAwaitedEvents(db, claim, awaited);
      await this.#decide({ kind: 'keys', keys: [...new Set(awaited.map(({ key }) => key))] });
    }
    if (upTo !== undefined) this.#timer.hasRead(upTo);
  }

  async outcomeOf(event: RecordedEvent, step: Step, given: Wait): Promise<WaitOutcome | undefined> {
    const { db, claim, reactor } = this.#options;
    const version = reactor.at(event.position);
    if (!version) throw reactor.unknownAt(event.position);
    const wait = { ...given, types: given.types.map((type) => awaitedName(version, type)) };
    const stored = await this.#find(event, step, wait);
    if (stored) return stored;
    const due = await storeWait(db, claim, event, version.keyOf(event), wait);
    this.#stored.add(event.position);
    const decided = await decideWaits(db, claim, { kind: 'event', position: event.position });
    const outcome = decided.length > 0 ? await this.#find(event, step, wait) : undefined;
    if (!outcome && due !== null) this.#timer.dueIn(due);
    return outcome;
  }

  /** Wakes nothing more. Resolves when no statement is under way. */
  close(): Promise<void> {
    return this.#timer.close();
  }

  async #find(event: RecordedEvent, step: Step, wait: Wait): Promise<WaitOutcome | undefined> {
    const { db, claim } = this.#options;
    const { isStored, work, outcome } = await findWait(db, claim, event, wait);
    if (isStored && work !== wait.work) throw stepChanged(step, work?.split(':')[1] ?? step.command);
    return outcome ?? undefined;
  }

  async #decide(scope: WaitScope): Promise<void> {
    const { db, claim } = this.#options;
    this.#wake(await decideWaits(db, claim, scope));
  }

  #wake(woken: readonly WokenInstance[]): void {
    for (const { position, key, isDeadLetter } of woken) if (!isDeadLetter) this.#woken.set(position, key);
    if (woken.length > 0) this.#listener?.onWoken();
  }
}
