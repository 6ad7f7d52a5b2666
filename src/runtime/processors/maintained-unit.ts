import type { RefoldError } from '../../errors.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import type { ProcessorUnit } from '../../store/server/processor-unit.ts';
import type { Processor } from '../consumers/event-source.ts';

/** A unit that this process can maintain, as its worker sees it: whatever the kind, it is claimed, fed from the log and let go of. */
export interface MaintainedUnit {
  readonly unit: ProcessorUnit;
  /** Equal for as long as what is maintained is the same; another rebuild of a version has another key. */
  readonly key: string;
  /** As messages name it, such as `cart_summary@2`. */
  readonly id: string;
  /** Makes what folds or handles its events, for the process that has claimed it. `db` is for as long as it is the owner. */
  start(db: Database, claim: ProcessorClaim): Promise<MaintainedProcessor>;
  /** Of the code that takes its events in: where that stopped, other code is given a try. */
  readonly codeFingerprint?: string;
  /** Why it could not go on where the error of a statement does not say it; null where there is no such reason. */
  explain?(): Promise<RefoldError | null>;
  /** What else it means that the unit has stopped, in the transaction that records it. */
  onStop?(tx: Queryable, reason: string): Promise<unknown>;
}

/** The processor of an owned unit. */
export interface MaintainedProcessor extends Processor {
  /** Why the processor stopped: the event that it could not take in. Everything before it is done. */
  readonly failure: RefoldError | null;
  /** Writes what has been taken in and not yet written. */
  flush(): Promise<void>;
  /**
   * Takes in nothing more, and has a page in hand, which may be many batches, end soon; resolves when nothing is in work outside of it. With a reason, what is in
   * work is given up at once: this process does not own the unit any more. Absent where a page is soon over by itself.
   */
  interrupt?(lost?: unknown): Promise<void>;
  /** Resolves or rejects when it can't go on outside of a page; as the end of its subscription. */
  readonly ended?: Promise<void>;
}

/** What is to be done now by whichever process declares it; asked again and again. */
export type WorkSource = () => Promise<{
  readonly units: readonly MaintainedUnit[];
  /** Whether there are tables whose time to be dropped has come. */
  readonly oldTables: boolean;
  /** The units that can't go on, as `unitText` writes them. */
  readonly stopped: ReadonlySet<string>;
}>;
