import type { RecordedEvent } from '../../src/index.ts';
import type { Queryable } from '../../src/store/statement.ts';
import type { AuditedStep } from '../audit.ts';
import type { FailOver } from '../fail-overs.ts';
import type { Ledger } from '../ledger.ts';

/** What is there when everything has come to rest. */
export interface Evidence {
  readonly db: Queryable;
  readonly ledger: Ledger;
  /** The whole log, in its order. */
  readonly events: readonly RecordedEvent[];
  readonly steps: readonly AuditedStep[];
  readonly failOvers: readonly FailOver[];
  readonly boundMs: { readonly kill: number; readonly stall: number };
}

/** Looks at one promise. */
export interface Judge {
  /** The promise, as a sentence. */
  readonly promise: string;
  /** What is not as it should be, the first first; nothing where all is well. */
  differences(evidence: Evidence): Promise<readonly string[]>;
}
