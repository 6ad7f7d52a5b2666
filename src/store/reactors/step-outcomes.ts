import { CommandRejected } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { storedJson } from '../../thrown.ts';
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

/** What a step executes: its command, and the fingerprint of the input. */
export interface StepWork {
  readonly command: string;
  readonly input: string;
}

/** The stored outcome of a step. */
export interface FoundStep {
  readonly key: string;
  readonly work: StepWork;
  /** Undefined if the step wrote events. */
  readonly quiet: QuietOutcome | undefined;
}

interface StoredOutcome {
  readonly step: string;
  readonly outcome?: {
    readonly kind: 'rejected' | 'nothing';
    readonly message?: string;
    readonly details?: Readonly<Record<string, unknown>>;
    readonly position?: string;
    readonly streamId?: string;
    readonly streamVersion?: number;
  };
}

/** The work of a step as it is stored. `refold.store_append_results` knows the prefix. Neither part contains a colon. */
export function stepWorkText({ command, input }: StepWork): string {
  return `step:${command}:${input}`;
}

/**
 * Stores an outcome under a step's key, among the keys of appends. The first entry, an append or a refusal, is the step's final outcome,
 * even if a stalled process and its successor decide at the same time.
 *
 * @returns whether this outcome was stored; otherwise another one exists
 */
export async function keepOutcome(db: Queryable, key: string, work: StepWork, outcome: QuietOutcome): Promise<boolean> {
  const json = storedJson(outcome);
  const kept = await db.query({
    name: 'keep step outcome',
    text: `
      insert into refold.append_keys (key, result)
      values (
        $1,
        jsonb_build_object(
          'recordedAt', clock_timestamp(),
          'streams', '[]'::jsonb,
          'positions', '[]'::jsonb,
          'step', $2::text,
          'outcome', $3::jsonb
        )
      )
      on conflict do nothing
      returning key`,
    values: [key, stepWorkText(work), json],
  });
  return kept.length > 0;
}

/** The stored outcomes under these keys. A result without a `step` belongs to another caller, who has guessed the key. */
export async function findSteps(db: Queryable, keys: readonly string[]): Promise<FoundStep[]> {
  const rows = await db.query<{ key: string; result: StoredOutcome }>({
    name: 'find steps',
    text: `
      select key, result
      from refold.append_keys
      where key = any ($1) and result ? 'step'`,
    values: [keys],
  });
  return rows.map(({ key, result }) => ({ key, work: workOf(result), quiet: quietOutcome(result) }));
}

function workOf({ step }: StoredOutcome): StepWork {
  const [, command = '', input = ''] = step.split(':');
  return { command, input };
}

function quietOutcome({ outcome }: StoredOutcome): QuietOutcome | undefined {
  if (!outcome) return undefined;
  if (outcome.kind === 'rejected')
    return { kind: 'rejected', message: outcome.message ?? '', details: outcome.details ?? {} };
  const { position = '0', streamId = '', streamVersion = 0 } = outcome;
  return { kind: 'nothing', position: BigInt(position) as GlobalPosition, streamId, streamVersion }; // stored as a GlobalPosition
}

export function rejectionOf({ message, details }: QuietOutcome & { kind: 'rejected' }): CommandRejected {
  return new CommandRejected(message, details);
}
