import type { GlobalPosition } from '../../events/global-position.ts';
import { beginning } from '../../events/global-position.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import {
  type DueWaits,
  decidedAtOnce,
  decideWaits,
  haveWritersEnded,
  readDueWaits,
  type WaitScope,
  type WokenInstance,
} from '../../store/reactors/decide-waits.ts';

export interface DueTimerOptions {
  readonly db: Database;
  readonly log: Pick<EventLog, 'head'>;
  readonly claim: ProcessorClaim;
  /** The types whose events the reactor stores. */
  readonly awaits: readonly string[];
  /** Whether more events may be woken. */
  hasRoom(): boolean;
  onWoken(woken: readonly WokenInstance[]): void;
  onError(error: unknown): void;
}

/** Timeouts that are over, until the reactor has stored every event that was recorded before. */
interface Overdue {
  /** The time up to which they are over. */
  readonly asOf: string;
  /** The end of the log, read after that time. */
  readonly head: GlobalPosition;
  /** The reactor has to read up to here. Unknown while a writer of that time is under way. */
  readTo?: GlobalPosition;
}

// The clocks of two machines drift, and a machine may sleep.
const longestSleep = 60_000;
// How soon to look again for the end of an append that was under way when a timeout was over.
const whileWriting = 100;

/** Decides waits when their time has come, by the database's clock. */
export class DueTimer {
  readonly #options: DueTimerOptions;
  #timer: NodeJS.Timeout | undefined;
  /** By this process's clock. */
  #firesAt = Number.POSITIVE_INFINITY;
  #polling: Promise<void> | undefined;
  #again = false;
  #isFull = false;
  #closed = false;
  #hasRead: GlobalPosition = beginning;
  #overdue: Overdue | undefined;

  constructor(options: DueTimerOptions) {
    this.#options = options;
    this.#hasRead = options.claim.checkpoint;
  }

  /** A wait is stored that is due in so many milliseconds. */
  dueIn(milliseconds: number): void {
    if (this.#closed) return;
    const delay = Math.min(Math.max(0, milliseconds), longestSleep);
    const firesAt = performance.now() + delay;
    if (this.#timer !== undefined && this.#firesAt <= firesAt) return;
    clearTimeout(this.#timer);
    this.#firesAt = firesAt;
    this.#timer = setTimeout(() => this.#fire(), Math.ceil(delay));
  }

  /** The reactor has stored all awaited events up to the position. */
  hasRead(position: GlobalPosition): void {
    this.#hasRead = position;
    if (this.#overdue?.readTo !== undefined && position >= this.#overdue.readTo) this.#fire();
  }

  /** Woken events were taken. */
  roomFreed(): void {
    if (!this.#isFull || !this.#options.hasRoom()) return;
    this.#isFull = false;
    this.#fire();
  }

  /** Decides what is due, and sleeps until the next due time. @throws what the database throws */
  async poll(): Promise<void> {
    const { db, claim, awaits } = this.#options;
    const due = await readDueWaits(db, claim.name, awaits);
    if (due.times) await this.#decide({ kind: 'times' });
    await this.#decideTimeouts(due);
    if (due.next !== null) this.dueIn(due.next);
  }

  /** Decides nothing more. Resolves when no statement is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#polling;
  }

  #fire(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#firesAt = Number.POSITIVE_INFINITY;
    if (this.#closed) return;
    this.#again = true;
    this.#polling ??= this.#pollAll();
  }

  async #pollAll(): Promise<void> {
    try {
      while (this.#again && !this.#closed) {
        this.#again = false;
        await this.poll();
      }
    } catch (error) {
      if (!this.#closed) this.#options.onError(error);
    } finally {
      this.#polling = undefined;
    }
  }

  /** An event that was recorded in time wins. So the timeout is decided only when all of them are stored. */
  async #decideTimeouts({ asOf, timeouts }: DueWaits): Promise<void> {
    const { db, log, awaits } = this.#options;
    if (!timeouts) {
      this.#overdue = undefined;
      return;
    }
    this.#overdue ??= { asOf, head: await log.head() };
    const overdue = this.#overdue;
    if (overdue.readTo === undefined) {
      // The order matters. A writer that recorded an event in time has begun before, so it has ended, and its positions are assigned.
      if (!(await haveWritersEnded(db, overdue.head))) return this.dueIn(whileWriting);
      overdue.readTo = await log.head();
    }
    if (this.#hasRead < overdue.readTo) return; // a page that reaches so far continues
    const woken = await this.#decide({ kind: 'timeouts', asOf: overdue.asOf, types: awaits });
    if (this.#isFull) return;
    this.#overdue = undefined;
    if (woken > 0) this.dueIn(0); // later timeouts may be over by now
  }

  /** Returns how many were woken. */
  async #decide(scope: WaitScope): Promise<number> {
    const { db, claim, hasRoom, onWoken } = this.#options;
    let total = 0;
    while (hasRoom() && !this.#closed) {
      const woken = await decideWaits(db, claim, scope);
      total += woken.length;
      onWoken(woken);
      if (woken.length < decidedAtOnce) return total;
    }
    this.#isFull = true;
    return total;
  }
}
