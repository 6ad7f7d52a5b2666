import type { RefoldError } from '../../errors.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import type { ProcessorUnit } from '../../store/server/processor-unit.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { Processor } from '../consumers/event-source.ts';

/** A unit that this process can maintain, as the worker sees it. Every kind of unit is claimed, fed from the log and released. */
export interface MaintainedUnit {
  readonly unit: ProcessorUnit;
  /** Stays equal while the maintained thing is the same. Another rebuild of a version has another key. */
  readonly key: string;
  /** The name in messages, for example `cart_summary@2`. */
  readonly id: string;
  /** The event types that it reads. */
  readonly filter: readonly EventFilter[];
  /** Creates the processor, after this process has claimed the unit. `db` works only while this process is the owner. */
  start(db: Database, claim: ProcessorClaim): Promise<MaintainedProcessor>;
  /** A hash of the code that processes its events. After a stop, a process with other code may try the unit. */
  readonly codeFingerprint?: string;
  /** Returns why the unit failed if the statement's error does not say it; null if no such reason is found. */
  explain?(): Promise<RefoldError | null>;
  /** Runs in the transaction that records the stop, for further consequences of it. */
  onStop?(tx: Queryable, reason: string): Promise<unknown>;
}

/** The processor of an owned unit. */
export interface MaintainedProcessor extends Processor {
  /** Why the processor stopped: the error of the event that failed. Everything before that event is done. */
  readonly failure: RefoldError | null;
  /** Writes what is folded or handled and not yet written. */
  flush(): Promise<void>;
  /**
   * Accepts nothing more and ends the current page soon, even if it consists of many batches. Resolves when nothing runs outside of the page.
   * With a reason, running work is aborted at once, because this process no longer owns the unit. Absent if a page is always short.
   */
  interrupt?(lost?: unknown): Promise<void>;
  /** Resolves or rejects if the processor ends outside of a page, with the same meaning as the end of its subscription. */
  readonly ended?: Promise<void>;
}

/** Returns what any process that declares it should do now. Called periodically. */
export type WorkSource = () => Promise<{
  readonly units: readonly MaintainedUnit[];
  /** Whether old tables are due to be dropped. */
  readonly oldTables: boolean;
  /** The units that are stopped, in the form of `unitText`. */
  readonly stopped: ReadonlySet<string>;
  /** When the worker of a Citus cluster was started that has the registry. It may have lost batches since, and the locks are on the coordinator. */
  readonly workerStart?: string;
}>;
