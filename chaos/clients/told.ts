import type { Response } from './ask.ts';

/** A position that a client got. It, or another client, demands it later. */
export interface Token {
  readonly text: string;
  /** In milliseconds since 1970. */
  readonly toldAt: number;
}

/** A response that a client got, and the request. */
export interface Answer {
  readonly client: string;
  readonly asked: Asked;
  /** The position that the response must include. */
  readonly demanded: Token | undefined;
  /** In milliseconds since 1970. */
  readonly askedAt: number;
  readonly toldAt: number;
  readonly response: Response;
}

export type Asked =
  /** A mutation: the append of the ledger that it makes. */
  | { readonly kind: 'write'; readonly append: number }
  /** A mutation that claims a unique value. */
  | { readonly kind: 'claim'; readonly append: number; readonly value: string }
  /** The journal's row of an acknowledged append, by the position of its last event in its stream. */
  | { readonly kind: 'written row'; readonly append: number }
  /** All rows and their aggregate. */
  | { readonly kind: 'sums' }
  /** The rows of one account. */
  | { readonly kind: 'account'; readonly accountId: string }
  /** A subscription. */
  | { readonly kind: 'feed' };

/** The position of a token, as a number. */
export function positionOf(token: string): bigint {
  return BigInt(/^\d+/.exec(token)?.[0] ?? -1);
}
