import type { CartLog } from './cart-log.ts';
import type { BenchServer } from './server.ts';

/** The bounds for the medians of one measure. If lower is better, a ratio is an upper bound, else a lower bound. */
export interface Target {
  readonly toPeer?: number;
  readonly toLimit?: number;
  /** In the unit of the measure. */
  readonly atMost?: number;
}

/** One measure of a scenario: a line of the report. Each list has one figure per round; the rounds of all three take turns. */
export interface Result {
  readonly scenario: string;
  readonly unit: string;
  readonly better: 'more' | 'less';
  readonly refold: readonly number[];
  /** Undefined if it has no peer, or if the peer is not installed. */
  readonly peer?: readonly number[] | undefined;
  readonly peerName?: string | undefined;
  /** Undefined if the measure has no limit to compare with. */
  readonly limit?: readonly number[] | undefined;
  readonly limitName?: string | undefined;
  readonly target: Target;
  /** Set if the same is measured on logs of several lengths. */
  readonly growth?: { readonly measure: string; readonly events: number };
}

export interface BenchContext {
  readonly server: BenchServer;
  readonly quick: boolean;
  readonly rounds: number;
  /** The log that the builds read, created on first use. Nothing is appended to it. */
  longLog(): Promise<CartLog>;
}

export interface Scenario {
  /** The name for `--only`. */
  readonly name: string;
  /** Left out of `--quick`, which should take two minutes; with `--only` it is measured there too. */
  readonly fullOnly?: boolean;
  /** Measures, and throws if a result is wrong. */
  run(context: BenchContext): Promise<readonly Result[]>;
}
