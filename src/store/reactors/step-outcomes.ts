import { CommandRejected } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Queryable } from '../statements/statement.ts';

/** The outcome of a workflow step that wrote no events. */
export type QuietOutcome =
  | { readonly kind: 'rejected'; readonly message: string; readonly details: Readonly<Record<string, unknown>> }
  | {
      readonly kind: 'nothing';
      readonly position: GlobalPosition;
      readonly streamId: string;
      readonly streamVersion: number;
    };

interface StoredOutcome {
  readonly outcome?: {
    readonly kind: 'rejected' | 'nothing';
    readonly message?: string;
    readonly details?: Readonly<Record<string, unknown>>;
    readonly position?: string;
    readonly streamId?: string;
    readonly streamVersion?: number;
  };
}

/**
 * Stores an outcome under a step's key, among the keys of appends. The first entry, an append or a refusal, is the step's final outcome,
 * even if a stalled process and its successor decide at the same time.
 *
 * @returns whether this outcome was stored; otherwise another one exists
 */
export async function keepOutcome(db: Queryable, key: string, outcome: QuietOutcome): Promise<boolean> {
  const kept = await db.query({
    name: 'keep step outcome',
    text: `
      insert into refold.append_keys (key, result)
      values ($1, jsonb_build_object('recordedAt', clock_timestamp(), 'streams', '[]'::jsonb, 'positions', '[]'::jsonb, 'outcome', $2::jsonb))
      on conflict do nothing
      returning key`,
    values: [key, JSON.stringify(outcome, (_, value) => (typeof value === 'bigint' ? value.toString() : value))],
  });
  return kept.length > 0;
}

/** The stored outcome; undefined if the step was not run or wrote events. */
export async function findOutcome(db: Queryable, key: string): Promise<QuietOutcome | undefined> {
  const rows = await db.query<{ result: StoredOutcome | null }>({
    name: 'find step outcome',
    text: 'select result from refold.append_keys where key = $1',
    values: [key],
  });
  const outcome = rows[0]?.result?.outcome;
  if (!outcome) return undefined;
  if (outcome.kind === 'rejected')
    return { kind: 'rejected', message: outcome.message ?? '', details: outcome.details ?? {} };
  const { position = '0', streamId = '', streamVersion = 0 } = outcome;
  return { kind: 'nothing', position: BigInt(position) as GlobalPosition, streamId, streamVersion }; // stored as a GlobalPosition
}

export function rejectionOf({ message, details }: QuietOutcome & { kind: 'rejected' }): CommandRejected {
  return new CommandRejected(message, details);
}
