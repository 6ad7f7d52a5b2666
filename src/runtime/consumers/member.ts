import type { GlobalPosition } from '../../events/global-position.ts';
import { maxPageBytes } from '../../store/statements/within-bytes.ts';
import type { Signal } from '../scheduling/signal.ts';
import type { EventPage, Processor } from './event-source.ts';
import { eventsFor, type WantedTypes, wantedTypes } from './wanted-types.ts';

/** Processors that share one reading of the source. */
export interface Reading {
  cursor: GlobalPosition;
  readonly members: Set<Member>;
  /** Members of another reading that merged into this one. They take part from the next read on, when the filter includes their types. */
  joining: Member[];
  /** Fired when a member took a page, was added or left. */
  readonly moved: Signal;
}

export interface MemberOptions {
  readonly processor: Processor;
  readonly reading: Reading;
  /** The source's `cuts` when the processor was added. */
  readonly cuts: number | undefined;
  /** Pages that wait are joined up to so many events. */
  readonly pageSize: number;
  /** Once it aborts, no further page is processed. */
  readonly stopping: AbortSignal;
}

/** A processor of a consumer, with the pages that wait for it. */
export class Member {
  readonly processor: Processor;
  /** Resolves when the processor has stopped or was removed; rejects with the error that ended it. */
  readonly done: Promise<void>;
  readonly cuts: MemberOptions['cuts'];
  reading: Reading;
  readonly #pageSize: number;
  readonly #stopping: AbortSignal;
  readonly #wanted: WantedTypes;
  readonly #settle: PromiseWithResolvers<void>;
  /** The first one is being processed. */
  readonly #pages: EventPage[] = [];
  #cursor: GlobalPosition;
  #over = false;
  #atHead = false;
  #working: Promise<void> | undefined;

  constructor({ processor, reading, cuts, pageSize, stopping }: MemberOptions) {
    this.processor = processor;
    this.reading = reading;
    this.cuts = cuts;
    this.#pageSize = pageSize;
    this.#stopping = stopping;
    this.#cursor = processor.checkpoint;
    this.#wanted = wantedTypes([processor]);
    this.#settle = Promise.withResolvers<void>();
    this.done = this.#settle.promise;
  }

  /** The position up to which it was given events. */
  get cursor(): GlobalPosition {
    return this.#cursor;
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** Whether it received a page that reached the horizon, so it knows that it has caught up, even if the log is empty. */
  get atHead(): boolean {
    return this.#atHead;
  }

  get waitingPages(): number {
    return this.#pages.length;
  }

  get isIdle(): boolean {
    return this.#pages.length === 0 && !this.#working;
  }

  /** Resolves when the current page is finished. */
  async quiet(): Promise<void> {
    await this.#working;
  }

  /** Takes what is new for it. `shared`: the page may hold events of types that only other members are subscribed to. */
  offer(page: EventPage, shared: boolean): void {
    const reachesHead = page.upTo >= page.horizon && page.upTo >= this.#cursor;
    if (page.upTo <= this.#cursor && (this.#atHead || !reachesHead)) return;
    this.#atHead ||= reachesHead;
    const events = eventsFor(page, this.#cursor, shared ? this.#wanted : undefined);
    this.#enqueue({ ...page, after: this.#cursor, events });
    this.#cursor = page.upTo;
    this.#working ??= this.#work();
  }

  /**
   * Joins small pages that wait. At the head, each holds the few events of a moment, and a processor writes each page by itself: with a page
   * for each moment, an event would wait for the writes of all pages before it.
   */
  #enqueue(page: EventPage): void {
    const last = this.#pages.length > 1 ? this.#pages.at(-1) : undefined;
    const bytes = (last?.bytes ?? 0) + (page.bytes ?? 0);
    if (last && last.events.length + page.events.length <= this.#pageSize && bytes <= maxPageBytes)
      this.#pages[this.#pages.length - 1] = {
        ...page,
        after: last.after,
        events: [...last.events, ...page.events],
        bytes,
      };
    else this.#pages.push(page);
  }

  /** Ends its part. The processor finishes its current page. */
  end(failure?: { readonly error: unknown }): void {
    if (this.#over) return;
    this.#over = true;
    this.#pages.length = 0;
    this.reading.members.delete(this);
    this.reading.moved.fire();
    if (failure) this.#settle.reject(failure.error);
    else this.#settle.resolve();
  }

  async #work(): Promise<void> {
    try {
      for (let page = this.#next(); page; page = this.#next()) {
        const outcome = await this.processor.process(page);
        this.#pages.shift();
        if (outcome === 'stop') this.end();
        this.reading.moved.fire();
      }
    } catch (error) {
      this.end({ error });
    } finally {
      this.#working = undefined;
      this.reading.moved.fire();
    }
  }

  #next(): EventPage | undefined {
    return this.#over || this.#stopping.aborted ? undefined : this.#pages[0];
  }
}
