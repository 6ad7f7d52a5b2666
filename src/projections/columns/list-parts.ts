/**
 * Returns the entries of a list in canonical form. `before` is an earlier list in that form, deeply frozen. Its objects that occur in the
 * new list, at any index, are reused without another check. An object that replaces one of them is compared with it by `canonical`.
 *
 * Each object is reused once: a row read from its table contains no object twice, and `evolve` must see the same here.
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

/**
 * Among the objects that are no longer at their index: those that are elsewhere in the list (`moved`), and those that are gone
 * (`replaced`).
 */
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
