import type { CartLog } from './cart-log.ts';
import type { BenchServer } from './server.ts';

/** What the medians of one measure are held against. For what is better less, a ratio is an upper bound, else a lower one. */
export interface Target {
  readonly toPeer?: number;
  readonly toLimit?: number;
  /** In the unit of the measure. */
  readonly atMost?: number;
}

/** One measure of a scenario: a line of the report. Each list has one figure a round, and the rounds of all three go in turn. */
export interface Result {
  readonly scenario: string;
  readonly unit: string;
  readonly better: 'more' | 'less';
  readonly refold: readonly number[];
  /** Nothing where there is no peer for it, or where it is not installed. */
  readonly peer?: readonly number[] | undefined;
  readonly peerName?: string | undefined;
  /** Nothing where the measure stands for itself. */
  readonly limit?: readonly number[] | undefined;
  readonly limitName?: string | undefined;
  readonly target: Target;
  /** Where the same is measured on logs of several lengths. */
  readonly growth?: { readonly measure: string; readonly events: number };
}

export interface BenchContext {
  readonly server: BenchServer;
  readonly quick: boolean;
  readonly rounds: number;
  /** The log that the builds read, made for the first that asks. Nobody appends to it. */
  longLog(): Promise<CartLog>;
}

export interface Scenario {
  /** What `--only` takes. */
  readonly name: string;
  /** Left out of `--quick`, which is to take two minutes; with `--only` it is measured there, too. */
  readonly fullOnly?: boolean;
  /** Measures, and throws where a result is wrong. */
  run(context: BenchContext): Promise<readonly Result[]>;
}
