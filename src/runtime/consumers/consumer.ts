import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { createSignal } from '../scheduling/signal.ts';
import type { EventPage, EventSource, Processor } from './event-source.ts';
import { historyChanged } from './history.ts';
import { Member, type Reading } from './member.ts';
import { filterOf } from './wanted-types.ts';

export interface ConsumerOptions {
  readonly source: EventSource;
  /** Events per read. Larger pages catch up faster and need more memory. @default 1000 */
  readonly pageSize?: number;
  /**
   * Backpressure: how many pages may wait for a busy processor, beside its current page, before reading pauses. Memory is bounded by
   * `pageSize * (bufferedPages + 2)` events for each reading. A higher number evens out a processor that is slow at times.
   * @default 4
   */
  readonly bufferedPages?: number;
}

/** A processor's registration with a consumer. */
export interface LogSubscription {
  /** Resolves when the processor has stopped or was removed; rejects with the error that ended it. */
  readonly done: Promise<void>;
  /** Removes the processor. Resolves when its current page is finished. */
  remove(): Promise<void>;
}

/**
 * Reads the log once for all its processors and passes each of them the events it is subscribed to.
 *
 * Processors at nearby positions share one reading. If a processor is so slow that others run out of events, it gets a reading of its own,
 * so a slow or failed processor never holds another back. Readings merge again at the head. Buffers are bounded.
 */
export interface Consumer {
  /**
   * Starts feeding these processors, each with the events past its checkpoint. A shared reading starts at the earliest checkpoint, and
   * no processor receives an event that it already has. More processors can be added at any time.
   */
  add(processors: readonly Processor[]): readonly LogSubscription[];
  /**
   * Resolves when no processor is left, because each has stopped, failed or was removed; reading then stops too. If any failed, it rejects
   * with the error of the first, after all have ended. Before the first `add` it resolves at once, so use it after adding.
   */
  readonly done: Promise<void>;
  /** Stops reading. Resolves when every processor has finished its current page. */
  stop(): Promise<void>;
}

/**
 * Creates a consumer that feeds processors from a source of events.
 *
 * @throws RefoldError `INVALID_CONFIG` if a size is not a whole number from 1 on.
 * @example
 * const consumer = createConsumer({ source: refold.source });
 * consumer.add([eventProcessor({ id: 'audit', events: cart, checkpoint: await load(), handle: write, saveCheckpoint: save })]);
 * process.once('SIGTERM', () => void consumer.stop());
 * await consumer.done;
 */
export function createConsumer({ source, pageSize = 1000, bufferedPages = 4 }: ConsumerOptions): Consumer {
  checkSize('pageSize', pageSize);
  checkSize('bufferedPages', bufferedPages);
  const readings = new SharedReadings({ source, pageSize, bufferedPages });
  return {
    add: (processors) => readings.add(processors),
    get done() {
      return readings.done;
    },
    stop: () => readings.stop(),
  };
}

class SharedReadings {
  readonly #options: Required<ConsumerOptions>;
  /** Members whose distance is at most this many positions share a reading. */
  readonly #near: bigint;
  readonly #readings = new Map<Reading, Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #over = createSignal();
  #left = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: Required<ConsumerOptions>) {
    this.#options = options;
    this.#near = BigInt(options.pageSize) * 2n;
  }

  get done(): Promise<void> {
    return this.#untilOver();
  }

  add(processors: readonly Processor[]): readonly LogSubscription[] {
    const { source, pageSize } = this.#options;
    const members = processors.map(
      (processor) =>
        new Member({
          ...{ processor, reading: newReading([], processor.checkpoint), cuts: source.cuts },
          ...{ pageSize, stopping: this.#stopping.signal },
        }),
    );
    if (this.#left === 0) this.#failure = undefined;
    this.#left += members.length;
    for (const { done } of members) this.#count(done);
    for (const cluster of clusters(members, this.#near)) {
      this.#start(cluster, (cluster[0] as Member).cursor); // clusters are not empty, and sorted
    }
    return members.map((member) => ({
      done: member.done,
      async remove() {
        member.end();
        await member.quiet();
      },
    }));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const members = [...this.#readings.keys()].flatMap((reading) => [...reading.members, ...reading.joining]);
    for (const reading of this.#readings.keys()) reading.moved.fire();
    for (const member of members) member.end();
    await Promise.all([...this.#readings.values(), ...members.map((member) => member.quiet())]);
  }

  #count(done: Promise<void>): void {
    done
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#left--;
        this.#over.fire();
      });
  }

  async #untilOver(): Promise<void> {
    while (this.#left > 0) await this.#over.next();
    if (this.#failure) throw this.#failure.error;
  }

  #start(members: readonly Member[], cursor: GlobalPosition): void {
    const reading = newReading(members, cursor);
    for (const member of members) member.reading = reading;
    this.#readings.set(
      reading,
      this.#readFor(reading).finally(() => this.#readings.delete(reading)),
    );
  }

  async #readFor(reading: Reading): Promise<void> {
    const { source } = this.#options;
    while (reading.members.size + reading.joining.length > 0 && !this.#stopping.signal.aborted) {
      try {
        const page = await this.#readPage(reading);
        if (page.upTo < page.horizon) continue;
        if (this.#meet(reading)) return;
        await Promise.race([source.wait(reading.cursor, this.#stopping.signal), reading.moved.next()]);
        reading.moved.fire(); // resolves the losing promise of the race; otherwise handlers pile up on a promise that seldom resolves
      } catch (error) {
        // The source itself failed. Each owner decides whether and when to start again.
        for (const member of [...reading.members, ...reading.joining]) member.end({ error });
      }
    }
  }

  async #readPage(reading: Reading): Promise<EventPage> {
    const { source, pageSize } = this.#options;
    this.#adopt(reading);
    this.#endOutdated(reading);
    const readers = reading.members.size;
    const filter = filterOf([...reading.members].map(({ processor }) => processor));
    const page = await source.read(reading.cursor, filter, pageSize);
    this.#endOutdated(reading);
    const isNew = page.upTo > reading.cursor || [...reading.members].some((member) => !member.atHead);
    if (isNew) {
      await this.#room(reading);
      for (const member of reading.members) member.offer(page, readers !== 1);
      reading.cursor = page.upTo;
    }
    return page;
  }

  /** Ends members whose events are gone from the source: they have no position to continue from. */
  #endOutdated(reading: Reading): void {
    const { cuts } = this.#options.source;
    for (const member of reading.members) {
      if (member.cuts !== cuts) member.end({ error: historyChanged(member.cursor) });
    }
  }

  #adopt(reading: Reading): void {
    const joining = reading.joining.filter((member) => !member.isOver);
    reading.joining = [];
    for (const member of joining) {
      // The reading may have advanced meanwhile. A member behind it would miss events, so it gets its own reading.
      if (member.cursor < reading.cursor) this.#start([member], member.cursor);
      else reading.members.add(member);
    }
  }

  /** Waits until every member has room. A full member leaves for a reading of its own if another member is idle. */
  async #room(reading: Reading): Promise<void> {
    for (;;) {
      const full = [...reading.members].filter((member) => this.#isFull(member));
      if (full.length === 0 || this.#stopping.signal.aborted) return;
      if ([...reading.members].some((member) => member.isIdle)) {
        for (const member of full) {
          reading.members.delete(member);
          this.#start([member], member.cursor);
        }
        return;
      }
      await reading.moved.next();
    }
  }

  #isFull(member: Member): boolean {
    return member.waitingPages >= this.#options.bufferedPages;
  }

  /** Merges into another reading that is at about the same position or further back. The other one continues for both. */
  #meet(reading: Reading): boolean {
    const other = [...this.#readings.keys()].find((candidate) => this.#canMerge(reading, candidate));
    if (!other) return false;
    for (const member of [...reading.members, ...reading.joining]) {
      member.reading = other;
      other.joining.push(member);
    }
    reading.members.clear();
    reading.joining = [];
    other.moved.fire();
    return true;
  }

  #canMerge(reading: Reading, into: Reading): boolean {
    if (into === reading || into.members.size === 0) return false;
    if (into.cursor > reading.cursor || reading.cursor - into.cursor > this.#near) return false;
    return [...reading.members, ...into.members].every((member) => !this.#isFull(member));
  }
}

function newReading(members: readonly Member[], cursor: GlobalPosition): Reading {
  return { cursor, members: new Set(members), joining: [], moved: createSignal() };
}

function checkSize(name: string, size: number): void {
  if (Number.isInteger(size) && size >= 1) return;
  throw new RefoldError('INVALID_CONFIG', `${name} of a consumer is a whole number from 1 on, found ${size}.`);
}

function clusters(members: readonly Member[], near: bigint): Member[][] {
  const sorted = [...members].sort((a, b) => (a.cursor < b.cursor ? -1 : a.cursor > b.cursor ? 1 : 0));
  const result: Member[][] = [];
  for (const member of sorted) {
    const last = result.at(-1);
    if (last && member.cursor - (last[0] as Member).cursor <= near)
      last.push(member); // never empty
    else result.push([member]);
  }
  return result;
}
