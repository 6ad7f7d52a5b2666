import { type Projection, partialText } from '../../projections/projection/projection.ts';
import { countNewlyLeftOut, type LeftOut } from '../../store/processors/left-out.ts';
import { answering, readVersionsOf } from '../../store/registry/all-registries.ts';
import { readVersion } from '../../store/registry/registry.ts';
import { type HeldBy, recordTransition, restateHold } from '../../store/registry/transitions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { TransitionReason } from './expect-version.ts';

/**
 * Returns why a version must not answer: it left out (as dead letters or skipped) more events than its declaration allows. Only events that the
 * next lower active version, which it would replace, has folded count. Null if it may answer, or there is no such version.
 */
export async function heldByDeadLetters(db: Queryable, projection: Projection): Promise<string | null> {
  const { id, name, version, activation } = projection;
  if (activation.maxNewDeadLetters === Number.POSITIVE_INFINITY) return null;
  const versions = await readVersionsOf(db, name);
  const own = versions.find((entry) => entry.version === version);
  const lower = versions.findLast((entry) => entry.state === 'active' && entry.version < version);
  if (!own || !lower) return null;
  const leftOut = await countNewlyLeftOut(db, own.tableName, lower);
  if (leftOut.letters + leftOut.skipped <= activation.maxNewDeadLetters) return null;
  const letters = leftOut.letters > 0 ? `; see 'refold dead-letters list ${id}'` : '';
  const skipped = leftOut.skipped > 0 ? ` 'refold activate ${id}' activates it without them.` : '';
  return `${leftOutText(leftOut)} that ${name}@${lower.version} does not have${letters}.${skipped}`;
}

/**
 * Returns why the table of a rebuild must not replace the serving one, by the rule of {@link heldByDeadLetters}. `projection` is the version with
 * the table of its rebuild.
 */
export async function rebuildHeldByDeadLetters(db: Queryable, projection: Projection): Promise<string | null> {
  const { id, name, version, tableName, activation } = projection;
  if (activation.maxNewDeadLetters === Number.POSITIVE_INFINITY) return null;
  const serving = await readVersion(db, { name, version });
  if (serving?.state !== 'active') return null;
  const leftOut = await countNewlyLeftOut(db, tableName, serving);
  if (leftOut.letters + leftOut.skipped <= activation.maxNewDeadLetters) return null;
  return `${leftOutText(leftOut)} that the table which answers does not have. 'refold rebuild ${id} --accept-dead-letters' lets it take over all the same, 'refold rebuild ${id} --cancel' ends it.`;
}

/** Holds the version at ready if its dead letters require it, and returns whether they do. */
export async function holdForDeadLetters(
  tx: Queryable,
  projection: Projection,
  { actor }: TransitionReason,
  heldBy: HeldBy | null = null,
): Promise<boolean> {
  const { name, version } = projection;
  const heldReason = await heldByDeadLetters(tx, projection);
  if (heldReason === null) return false;
  if (heldBy === 'dead-letters') await restateHold(tx, projection, heldBy, heldReason);
  else {
    const held = { heldReason, heldBy: 'dead-letters', actor, reason: heldReason } as const;
    await recordTransition(tx, { name, version, from: 'ready', to: 'ready', ...held });
  }
  return true;
}

/** Holds a version whose table lacks events that the version which answers has. Returns whether it does. */
export async function holdWhatIsPartial(
  tx: Queryable,
  projection: Projection,
  { actor }: TransitionReason,
): Promise<boolean> {
  const { id, name, version, startAfter } = projection;
  const answers = await answering(tx, name);
  if (!answers || startAfter <= BigInt(answers.definition.startAfter ?? 0)) return false;
  const heldReason = `It is partial: ${partialText(projection)}, and ${name}@${answers.version} has earlier ones. 'refold activate ${id}' activates it all the same.`;
  const held = { heldReason, heldBy: 'partial', actor, reason: heldReason } as const;
  await recordTransition(tx, { name, version, from: 'ready', to: 'ready', ...held });
  return true;
}

function leftOutText({ letters, skipped, firstSkipped }: LeftOut): string {
  const deadLetters = `${letters} dead ${letters === 1 ? 'letter' : 'letters'}`;
  if (skipped === 0) return deadLetters;
  const skips = `${skipped} skipped ${skipped === 1 ? 'event' : 'events'} (the first at position ${firstSkipped})`;
  return letters === 0 ? skips : `${deadLetters} and ${skips}`;
}
