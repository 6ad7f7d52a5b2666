import { type FieldNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from 'graphql';

export type Fragments = Readonly<Record<string, FragmentDefinitionNode>>;

/**
 * Calls `visit` with each field of a selection, including skipped ones, and with the fields below it if `visit` returns `below`. Each
 * fragment is visited once: fragments that spread others twice would multiply exponentially.
 */
export function walkFields(
  selection: SelectionSetNode | undefined,
  fragments: Fragments,
  visit: (field: FieldNode) => 'below' | 'next',
): void {
  const spread = new Set<string>();
  const walk = (set: SelectionSetNode | undefined): void => {
    for (const part of set?.selections ?? []) {
      if (part.kind === Kind.FIELD) {
        if (visit(part) === 'below') walk(part.selectionSet);
      } else if (part.kind === Kind.INLINE_FRAGMENT) walk(part.selectionSet);
      else if (!spread.has(part.name.value)) {
        spread.add(part.name.value);
        walk(fragments[part.name.value]?.selectionSet);
      }
    }
  };
  walk(selection);
}
