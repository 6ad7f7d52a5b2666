import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { createSignal, type Signal } from '../scheduling/signal.ts';
import type { EventPage, EventSource, Processor } from './event-source.ts';
import { historyChanged } from './history.ts';
import { eventsFor, filterOf, type WantedTypes, wantedTypes } from './wanted-types.ts';

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
export interface Subscription {
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
  add(processors: readonly Processor[]): readonly Subscription[];
  /**
   * Resolves when no processor is left, because each has stopped, failed or was removed; reading then stops too. If any failed, it rejects
   * with the error of the first, after all have ended. Before the first `add` it resolves at once, so use it after adding.
   */
  readonly done: Promise<void>;
  /** Stops reading. Resolves when every processor has finished its current page. */
  stop(): Promise<void>;
}

interface Member {
  readonly processor: Processor;
  readonly wanted: WantedTypes;
  readonly queue: EventPage[];
  /** The position up to which it was given events. */
  cursor: GlobalPosition;
  working: Promise<void> | undefined;
  over: boolean;
  /** Whether it received a page that reached the horizon, so it knows that it has caught up, even if the log is empty. */
  atHead: boolean;
  /** The source's `cuts` when the processor was added. */
  readonly cuts: number | undefined;
  readonly settle: { resolve(): void; reject(error: unknown): void };
  group: Group;
}

/** Processors that share one reading. */
interface Group {
  cursor: GlobalPosition;
  readonly members: Set<Member>;
  /** Members of another reading that merged into this one. They take part from the next read on, when the filter includes their types. */
  joining: Member[];
  /** Fired when a member took a page, was added or left. */
  readonly moved: Signal;
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
  const stopping = new AbortController();
  const groups = new Map<Group, Promise<void>>();
  const over = createSignal();
  let left = 0;
  let failure: { readonly error: unknown } | undefined;
  const near = BigInt(pageSize) * 2n;

  function start(members: readonly Member[], cursor: GlobalPosition): void {
    const group: Group = { cursor, members: new Set(members), joining: [], moved: createSignal() };
    for (const member of members) member.group = group;
    groups.set(
      group,
      readFor(group).finally(() => groups.delete(group)),
    );
  }

  async function readFor(group: Group): Promise<void> {
    while (group.members.size + group.joining.length > 0 && !stopping.signal.aborted) {
      adopt(group);
      endOutdated(group);
      try {
        const readers = group.members.size;
        const page = await source.read(
          group.cursor,
          filterOf([...group.members].map(({ processor }) => processor)),
          pageSize,
        );
        endOutdated(group);
        if (page.upTo > group.cursor || [...group.members].some((member) => !member.atHead))
          await handOut(group, page, readers);
        if (page.upTo < page.horizon) continue;
        if (meet(group)) return;
        await Promise.race([source.wait(group.cursor, stopping.signal), group.moved.next()]);
        group.moved.fire(); // resolves the losing promise of the race; otherwise handlers pile up on a promise that seldom resolves
      } catch (error) {
        // The source itself failed. Each owner decides whether and when to start again.
        for (const member of [...group.members, ...group.joining]) end(member, () => member.settle.reject(error));
      }
    }
  }

  /** Ends members whose events are gone from the source: they have no position to continue from. */
  function endOutdated(group: Group): void {
    for (const member of group.members)
      if (member.cuts !== source.cuts) end(member, () => member.settle.reject(historyChanged(member.cursor)));
  }

  function adopt(group: Group): void {
    const joining = group.joining.filter((member) => !member.over);
    group.joining = [];
    for (const member of joining) {
      // The reading may have advanced meanwhile. A member behind it would miss events, so it gets its own reading.
      if (member.cursor < group.cursor) start([member], member.cursor);
      else group.members.add(member);
    }
  }

  async function handOut(group: Group, page: EventPage, readers: number): Promise<void> {
    await room(group);
    for (const member of group.members) {
      const reachesHead = page.upTo >= page.horizon && page.upTo >= member.cursor;
      if (page.upTo <= member.cursor && (member.atHead || !reachesHead)) continue;
      member.atHead ||= reachesHead;
      member.queue.push({
        ...page,
        after: member.cursor,
        events: eventsFor(page, member.cursor, readers === 1 ? undefined : member.wanted),
      });
      member.cursor = page.upTo;
      member.working ??= work(member);
    }
    group.cursor = page.upTo;
  }

  /** Waits until every member has room. A full member leaves for a reading of its own if another member is idle. */
  async function room(group: Group): Promise<void> {
    for (;;) {
      const full = [...group.members].filter((member) => member.queue.length >= bufferedPages);
      if (full.length === 0 || stopping.signal.aborted) return;
      const starving = [...group.members].some((member) => member.queue.length === 0 && !member.working);
      if (starving) {
        for (const member of full) {
          group.members.delete(member);
          start([member], member.cursor);
        }
        return;
      }
      await group.moved.next();
    }
  }

  /** Merges into another reading that is at about the same position or further back. The other one continues for both. */
  function meet(group: Group): boolean {
    for (const other of groups.keys()) {
      if (
        other === group ||
        other.members.size === 0 ||
        other.cursor > group.cursor ||
        group.cursor - other.cursor > near
      )
        continue;
      const ready = [...group.members, ...other.members].every((member) => member.queue.length < bufferedPages);
      if (!ready) continue;
      for (const member of [...group.members, ...group.joining]) {
        member.group = other;
        other.joining.push(member);
      }
      group.members.clear();
      group.joining = [];
      other.moved.fire();
      return true;
    }
    return false;
  }

  async function work(member: Member): Promise<void> {
    try {
      for (let page = member.queue[0]; page && !member.over && !stopping.signal.aborted; page = member.queue[0]) {
        const outcome = await member.processor.process(page);
        member.queue.shift();
        if (outcome === 'stop') end(member, member.settle.resolve);
        member.group.moved.fire();
      }
    } catch (error) {
      end(member, () => member.settle.reject(error));
    } finally {
      member.working = undefined;
      member.group.moved.fire();
    }
  }

  async function untilOver(): Promise<void> {
    while (left > 0) await over.next();
    if (failure) throw failure.error;
  }

  function end(member: Member, settle: () => void): void {
    if (member.over) return;
    member.over = true;
    member.queue.length = 0;
    member.group.members.delete(member);
    member.group.moved.fire();
    settle();
  }

  return {
    add(processors) {
      const placed = processors.map((processor) => place(processor, source.cuts));
      if (left === 0) failure = undefined;
      left += placed.length;
      for (const { done } of placed) {
        done
          .catch((error: unknown) => {
            failure ??= { error };
          })
          .finally(() => {
            left--;
            over.fire();
          });
      }
      for (const cluster of clusters(
        placed.map(({ member }) => member),
        near,
      )) {
        start(cluster, (cluster[0] as Member).cursor); // clusters are not empty, and sorted
      }
      return placed.map(({ member, done }) => ({
        done,
        async remove() {
          end(member, member.settle.resolve);
          await member.working;
        },
      }));
    },
    get done() {
      return untilOver();
    },
    async stop() {
      stopping.abort();
      const members = [...groups.keys()].flatMap((group) => [...group.members, ...group.joining]);
      for (const group of groups.keys()) group.moved.fire();
      for (const member of members) end(member, member.settle.resolve);
      await Promise.all([...groups.values(), ...members.map((member) => member.working)]);
    },
  };
}

function checkSize(name: string, size: number): void {
  if (Number.isInteger(size) && size >= 1) return;
  throw new RefoldError('INVALID_CONFIG', `${name} of a consumer is a whole number from 1 on, found ${size}.`);
}

function place(processor: Processor, cuts: number | undefined): { member: Member; done: Promise<void> } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const member: Member = {
    processor,
    wanted: wantedTypes([processor]),
    queue: [],
    cursor: processor.checkpoint,
    working: undefined,
    over: false,
    atHead: false,
    cuts,
    settle: { resolve, reject },
    group: { cursor: processor.checkpoint, members: new Set(), joining: [], moved: createSignal() }, // replaced when its reading starts
  };
  return { member, done: promise };
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
