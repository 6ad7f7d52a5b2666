import type { GlobalPosition } from '../../events/global-position.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { causesOf, tracedEffect } from '../../tracing.ts';

export interface TracedFold {
  readonly claim: ProcessorClaim;
  /** The events that lead to the rows, or the first of them. */
  readonly events: readonly { readonly metadata: { readonly traceparent?: string } }[];
  readonly upTo: GlobalPosition;
}

/**
 * Folds a batch in a span: within the span of the append if one has caused it, and linked to them if there are several. Only for versions that
 * are up to date: the history that a build folds was caused long ago.
 */
export function tracedFold<T>({ claim, events, upTo }: TracedFold, fold: () => Promise<T>): Promise<T> {
  const { name, version, partition, partitions } = claim;
  const attributes = {
    'refold.projection': name,
    'refold.version': version,
    'refold.partition': partitions === 1 ? undefined : partition,
    'refold.position': upTo.toString(),
  };
  const causes = causesOf(events.map(({ metadata }) => metadata.traceparent));
  return tracedEffect(`fold ${name}@${version}`, { kind: 'consumer', attributes }, causes, fold);
}
