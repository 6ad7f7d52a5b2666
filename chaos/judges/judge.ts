import type { RecordedEvent } from '../../src/index.ts';
import type { Queryable } from '../../src/store/postgres/statement.ts';
import type { AuditedStep } from '../audit.ts';
import type { FeedClient } from '../clients/feeds.ts';
import type { Answer } from '../clients/told.ts';
import type { FailOver } from '../fail-overs.ts';
import type { Ledger } from '../ledger.ts';

/** What is there when everything has come to rest. */
export interface Evidence {
  readonly db: Queryable;
  readonly ledger: Ledger;
  /** What clients were told since the last time that everything was at rest. */
  readonly answers: readonly Answer[];
  readonly feeds: readonly FeedClient[];
  /** How long a feed that was disconnected may take to be current. */
  readonly feedPatienceMs: number;
  /** The whole log, in its order. */
  readonly events: readonly RecordedEvent[];
  readonly steps: readonly AuditedStep[];
  readonly failOvers: readonly FailOver[];
  readonly boundMs: { readonly kill: number; readonly stall: number };
}

/** Looks at one promise. */
export interface Judge {
  /** How it is left out: `--without NAME`. */
  readonly name: string;
  /** The promise, as a sentence. */
  readonly promise: string;
  /** What is not as it should be, the first first; nothing where all is well. */
  differences(evidence: Evidence): Promise<readonly string[]>;
}
