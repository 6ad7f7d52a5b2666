import { type Projection, partialText } from '../../projections/projection/projection.ts';
import { highestActive } from '../../store/registry/definitions.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { TransitionReason } from './transition-reason.ts';

/** Holds a version whose table lacks events that the version which answers has. Returns whether it does. */
export async function holdWhatIsPartial(
  tx: Queryable,
  projection: Projection,
  { actor }: TransitionReason,
): Promise<boolean> {
  const { id, name, version, startAfter } = projection;
  const answers = await highestActive(tx, name);
  if (!answers || startAfter <= BigInt(answers.definition.startAfter ?? 0)) return false;
  const heldReason = `It is partial: ${partialText(projection)}, and ${name}@${answers.version} has earlier ones. 'refold activate ${id}' activates it all the same.`;
  const held = { heldReason, heldBy: 'partial', actor, reason: heldReason } as const;
  await recordTransition(tx, { name, version, from: 'ready', to: 'ready', ...held });
  return true;
}
