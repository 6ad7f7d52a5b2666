import type { Logger } from 'pino';
import type { EventFamily } from '../../events/event-family.ts';
import type { Ownership } from '../../store/ownership/ownership.ts';
import type { Database } from '../../store/postgres/database.ts';
import { reasonOf } from '../../thrown.ts';
import { type Consumer, createConsumer, type LogSubscription } from '../consumers/consumer.ts';
import type { EventSource, Processor } from '../consumers/event-source.ts';
import type { History } from '../consumers/history.ts';
import type { MaintainedProcessor, MaintainedUnit, WorkSource } from '../processors/maintained-unit.ts';
import { type PeriodicTask, startPeriodicTask } from '../scheduling/periodic-task.ts';
import type { VersionView } from '../versions/versions.ts';
import { ClaimableUnit, type ClaimedUnit, type ClaimOptions } from './claimable-unit.ts';
import type { ProcessDescription } from './presence.ts';
import { type Assignment, createRebalancer, type Rebalancer, type Standing } from './rebalancer.ts';

export interface WorkerOptions {
  readonly db: Database;
  /** Returns the units to maintain. Processes with equal declarations get equal units. */
  readonly work: WorkSource;
  /** Returns the units whose rows are not those of their checkpoint any more. Absent in a database where that can't be. */
  readonly lostRows?: () => Promise<readonly string[]>;
  /** Drops tables that have been unused long enough. */
  dropOldTables(): Promise<void>;
  readonly source: EventSource;
  /** When it changes, everything folded in memory is discarded and folded again from what is stored. */
  readonly history: History;
  /** Times the pages of a processor. */
  readonly timed?: (processor: Processor) => Processor;
  readonly pageSize: number;
  readonly bufferedPages: number;
  readonly ownership: Ownership;
  /** The server rolls back a batch of a hanging process after this time, and the next owner can continue. Milliseconds. */
  readonly longestStallMs: number;
  readonly versions: Pick<VersionView, 'onChange'>;
  /** The declared families, which say what this process can read. */
  readonly families: readonly EventFamily[];
  /** Its name is the owner's name in the registry. */
  readonly described: ProcessDescription;
  readonly logger: Logger;
}

/** Keeps the declared versions and reactors of this process current, together with the workers of other processes. */
export interface Worker {
  /** Finishes running batches, writes what is folded and releases all units. */
  stop(): Promise<void>;
}

// The interval in which a process notices free units. It bounds the duration of a fail-over, beside the time PostgreSQL needs to notice a
// lost connection.
const lookForWorkMilliseconds = 500;

// How soon a process notices rows that a worker of a Citus cluster has lost: at the second poll. Each asks all workers.
const lookForLossMilliseconds = 5000;

// Claims of many units share round trips, and the pool has room for other statements.
const claimedAtOnce = 8;

export function createWorker(options: WorkerOptions): Worker {
  return new PeriodicWorker(options);
}

class PeriodicWorker implements Worker {
  readonly #options: WorkerOptions;
  readonly #claims: ClaimOptions;
  readonly #consumer: Consumer;
  readonly #rebalancer: Rebalancer;
  readonly #units = new Map<string, ClaimableUnit>();
  readonly #stopping = new AbortController();
  readonly #task: PeriodicTask;
  readonly #lossTask: PeriodicTask | undefined;
  /** As of the last poll. */
  #workerStart: string | undefined;
  readonly #unsubscribe: readonly (() => void)[];

  constructor(options: WorkerOptions) {
    const { db, ownership, described, longestStallMs, logger, source, pageSize, bufferedPages } = options;
    const { versions, history, families } = options;
    this.#options = options;
    this.#consumer = createConsumer({ source, pageSize, bufferedPages });
    this.#rebalancer = createRebalancer(db, described);
    this.#claims = {
      ...{ db, ownership, longestStallMs, logger, families },
      owner: described.name,
      stopping: this.#stopping.signal,
      onFinished: () => this.#task.soon(),
      others: () => this.#rebalancer.others(this.#standing()),
      known: described,
    };
    this.#task = startPeriodicTask(
      lookForWorkMilliseconds,
      () => this.#lookForWork(),
      (error) => logger.warn({ err: error }, `could not look for work; trying again: ${reasonOf(error)}`),
    );
    const { lostRows } = options;
    this.#lossTask =
      lostRows &&
      startPeriodicTask(
        lookForLossMilliseconds,
        async () => {
          const units = this.#named(await lostRows());
          this.#discard(units, 'its rows are not those of its checkpoint, as after a worker has lost transactions');
        },
        (error) =>
          logger.warn(
            { err: error },
            `could not compare rows with their checkpoints; trying again. ${reasonOf(error)}`,
          ),
      );
    this.#unsubscribe = [
      versions.onChange(() => this.#task.soon()),
      history.onChange(() => {
        this.#discard(this.#units.values(), 'the database server was started again, or its history has changed');
      }),
    ];
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    // Interrupt all units at once: nothing new starts, and the waits for running work overlap.
    this.#interruptAll();
    await Promise.all([this.#task.stop(), this.#lossTask?.stop()]);
    // Interrupt also the units claimed meanwhile.
    this.#interruptAll();
    await this.#consumer.stop();
    await this.#release([...this.#units.values()], this.#rebalancer.leave);
    // Also if no unit was owned. If the database does not get this, the announcement expires by itself.
    await this.#rebalancer.leave().catch(() => {});
  }

  async #lookForWork(): Promise<void> {
    const keptStopped = [...this.#units.values()].filter(({ isStopped }) => isStopped);
    const { units, oldTables, stopped, workerStart } = await this.#options.work();
    if (this.#workerStart !== undefined && this.#workerStart !== workerStart)
      this.#discard(
        this.#units.values(),
        'the worker of the Citus cluster that has the registry was started again, or is another one',
      );
    this.#workerStart = workerStart;
    await this.#adjustUnits(units);
    await this.#letOthersRetry(keptStopped.filter(({ name }) => !stopped.has(name)));
    if (oldTables) await this.#options.dropOldTables();
    const { release, take, takeOver } = await this.#rebalancer.next(this.#standing(), (others) =>
      [...this.#units.values()].filter((unit) => unit.isLeftTo(others)).map(({ name }) => name),
    );
    await this.#release(this.#named(release), () => this.#announce());
    const claimed = new Map<ClaimableUnit, MaintainedProcessor>();
    try {
      await this.#claim({ take, takeOver }, claimed);
    } finally {
      // Also those that were claimed before a failure: no other process feeds them.
      this.#feed(claimed);
    }
    if (claimed.size > 0) await this.#announce();
  }

  async #claim(
    { take, takeOver }: Pick<Assignment, 'take' | 'takeOver'>,
    claimed: Map<ClaimableUnit, MaintainedProcessor>,
  ) {
    /** Tries the locks of so many units in one statement. */
    const claim = async (units: readonly ClaimableUnit[], triedAtOnce = claimedAtOnce): Promise<void> => {
      const owned: (readonly [ClaimableUnit, ClaimedUnit])[] = [];
      for (const tried of inPartsOf(triedAtOnce, units)) {
        const locks = await Promise.all(tried.map(async (unit) => ({ unit, lock: await unit.tryLock() })));
        const locked = locks.flatMap(({ unit, lock }) => (lock ? [{ unit, lock }] : []));
        for (const part of inPartsOf(claimedAtOnce, locked)) {
          await Promise.all(
            part.map(async ({ unit, lock }) => {
              const one = await unit.claim(lock);
              if (one) owned.push([unit, one]);
            }),
          );
        }
      }
      const begun = await Promise.all(owned.map(async ([unit, one]) => [unit, await unit.begin(one)] as const));
      for (const [unit, processor] of begun) if (processor) claimed.set(unit, processor);
    };
    await claim(this.#named(take));
    // If the first unit of a process is still locked, that process is alive, and its other units need not be tried.
    const owners = takeOver.map(({ process, units }) => ({ process, units: this.#named(units) }));
    const firsts = new Set(owners.flatMap(({ units }) => units.slice(0, 1)));
    await claim([...firsts], firsts.size);
    for (const { process, units } of owners) {
      const [first, ...rest] = units;
      if (!first || !claimed.has(first)) continue;
      await this.#rebalancer.declareGone(process);
      await claim(rest);
    }
  }

  /** Adds them together, so processors at nearby positions share one reading of the log. */
  #feed(claimed: ReadonlyMap<ClaimableUnit, MaintainedProcessor>): void {
    const { timed = (processor: Processor) => processor } = this.#options;
    const subscriptions = this.#consumer.add([...claimed.values()].map(timed));
    for (const [index, unit] of [...claimed.keys()].entries()) {
      unit.follow(subscriptions[index] as LogSubscription); // one for each
    }
  }

  async #letOthersRetry(units: readonly ClaimableUnit[]): Promise<void> {
    for (const unit of units) unit.letOthersRetry();
    await this.#release(units);
  }

  #discard(units: Iterable<ClaimableUnit>, why: string): void {
    for (const unit of units) unit.discard(why);
  }

  #announce(): Promise<void> {
    return this.#rebalancer.announce(this.#standing());
  }

  #standing(): Standing {
    const namesOf = (is: (unit: ClaimableUnit) => boolean) =>
      [...this.#units.values()].filter(is).map(({ name }) => name);
    return {
      declares: namesOf(({ isAble }) => isAble),
      owns: namesOf(({ isOwned }) => isOwned),
      keeps: namesOf(({ isStopped }) => isStopped),
    };
  }

  #named(names: readonly string[]): ClaimableUnit[] {
    const wanted = new Set(names);
    return [...this.#units.values()].filter(({ name }) => wanted.has(name));
  }

  /** Keeps one entry for each unit to maintain, and releases the others. */
  async #adjustUnits(units: readonly MaintainedUnit[]): Promise<void> {
    const wanted = new Map(units.map((maintained) => [maintained.key, maintained]));
    const over = [...this.#units].filter(([key]) => !wanted.has(key));
    await this.#release(over.map(([, unit]) => unit));
    for (const [key] of over) this.#units.delete(key);
    for (const [key, maintained] of wanted) {
      if (!this.#units.has(key)) this.#units.set(key, new ClaimableUnit(this.#claims, maintained));
    }
  }

  /** Releases units in order: write what is folded, announce, then release the locks. */
  async #release(units: readonly ClaimableUnit[], announce?: () => Promise<void>): Promise<void> {
    const settling = units.flatMap((unit) => unit.settle() ?? []);
    if (settling.length === 0) return;
    const releases = await Promise.all(settling);
    await announce?.().catch((error: unknown) =>
      this.#options.logger.debug(
        { err: error },
        'could not announce released units; other processes will find them by probing',
      ),
    );
    for (const release of releases) await release();
  }

  #interruptAll(): void {
    for (const unit of this.#units.values()) unit.interrupt();
  }
}

function inPartsOf<T>(size: number, items: readonly T[]): readonly (readonly T[])[] {
  const parts: T[][] = [];
  for (let start = 0; start < items.length; start += size) parts.push(items.slice(start, start + size));
  return parts;
}
