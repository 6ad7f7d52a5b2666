/**
 * The entries of a list in canonical form, where `before` is an earlier list in that form, frozen with all that is in it. Its objects stay what
 * they are, wherever they stand now, and are not looked at again; what replaces one of them is told which it was.
 *
 * Each of them is taken once: a row read back from its table holds no object twice, and `evolve` must not see one here.
 */
export function listParts(
  list: readonly unknown[],
  before: unknown,
  canonical: (entry: unknown, index: number, before: unknown) => unknown,
): readonly unknown[] {
  const known: readonly unknown[] = Array.isArray(before) ? before : [];
  const { moved, replaced } = known.length === 0 ? none : elsewhere(list, known);
  const parts: unknown[] = [];
  for (let index = 0; index < list.length; index++) {
    const entry = list[index];
    const here = known[index];
    if (entry !== undefined && entry === here) parts.push(here);
    else if (moved.delete(entry)) parts.push(entry);
    else parts.push(canonical(entry, index, replaced.has(here) ? here : undefined));
  }
  return Object.freeze(parts);
}

const none = { moved: new Set<unknown>(), replaced: new Set<unknown>() };

/** Of the objects that are not where they were: which are in the list still, and which are not. */
function elsewhere(list: readonly unknown[], known: readonly unknown[]): typeof none {
  const missing = known.filter((entry, index) => entry !== list[index] && typeof entry === 'object' && entry !== null);
  if (missing.length === 0) return none;
  const replaced = new Set(missing);
  const moved = new Set<unknown>();
  for (let index = 0; index < list.length; index++) {
    const entry = list[index];
    if (entry !== known[index] && replaced.delete(entry)) moved.add(entry);
  }
  return { moved, replaced };
}
