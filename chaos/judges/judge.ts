import type { RecordedEvent } from '../../src/index.ts';
import type { Queryable } from '../../src/store/statements/statement.ts';
import type { AuditedStep } from '../audit.ts';
import type { FeedClient } from '../clients/feeds.ts';
import type { Answer } from '../clients/told.ts';
import type { FailOver } from '../fail-overs.ts';
import type { HeldStream } from '../held-streams.ts';
import type { Ledger } from '../ledger.ts';
import type { StoreOutage } from '../store-faults.ts';
import type { Trials } from '../trials/trials.ts';

/** A database of read models. */
export interface JudgedStore {
  readonly name: string;
  readonly db: Queryable;
}

/** The state when everything has come to rest. */
export interface Evidence {
  /** The database of the log. */
  readonly db: Queryable;
  /** The databases of all stores, that of the log first. */
  readonly stores: readonly JudgedStore[];
  readonly ledger: Ledger;
  /** The responses that clients got since everything was last at rest. */
  readonly answers: readonly Answer[];
  readonly feeds: readonly FeedClient[];
  /** How long a disconnected feed may take to be current. */
  readonly feedPatienceMs: number;
  /** The whole log, in order. */
  readonly events: readonly RecordedEvent[];
  readonly steps: readonly AuditedStep[];
  readonly failOvers: readonly FailOver[];
  readonly boundMs: Readonly<Record<FailOver['cause'], number>>;
  /** Those while no other fault was active. */
  readonly storeOutages: readonly StoreOutage[];
  readonly heldStreams: readonly HeldStream[];
  readonly trials: Trials;
}

/** Checks one promise. */
export interface Judge {
  /** The name to leave it out: `--without NAME`. */
  readonly name: string;
  /** The promise, as a sentence. */
  readonly promise: string;
  /** Violations of the promise, the first one first; empty if it holds. */
  differences(evidence: Evidence): Promise<readonly string[]>;
}
