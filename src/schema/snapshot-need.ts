import { type DocumentNode, type FieldNode, Kind, type OperationDefinitionNode, type SelectionSetNode } from 'graphql';

const known = new WeakMap<OperationDefinitionNode, boolean>();

/**
 * Whether an operation may read more than once, so that its answers agree only within one snapshot of the database.
 * A single look-up needs none, and can share its statement with other operations.
 */
export function needsSnapshot(operation: OperationDefinitionNode, document: DocumentNode): boolean {
  const before = known.get(operation);
  if (before !== undefined) return before;
  const reads = readsOf(operation, document);
  known.set(operation, reads > 1);
  return reads > 1;
}

/** Counts each selected field that may read; skipped ones too, and a count beside its page. */
function readsOf(operation: OperationDefinitionNode, document: DocumentNode): number {
  const isMutation = operation.operation === 'mutation';
  const roots = fieldsOf(operation.selectionSet, document);
  return roots
    .filter(({ name }) => !name.value.startsWith('__'))
    .flatMap((root) => (isMutation ? fieldsOf(root.selectionSet, document) : [root]))
    .flatMap((field) => (isMutation && field.name.value === 'query' ? fieldsOf(field.selectionSet, document) : [field]))
    .reduce((sum, field) => {
      if (!field.selectionSet) return sum;
      return sum + (fieldsOf(field.selectionSet, document).some(({ name }) => name.value === 'totalCount') ? 2 : 1);
    }, 0);
}

function fieldsOf(set: SelectionSetNode | undefined, document: DocumentNode): readonly FieldNode[] {
  return (set?.selections ?? []).flatMap((selection): readonly FieldNode[] => {
    if (selection.kind === Kind.FIELD) return [selection];
    if (selection.kind === Kind.INLINE_FRAGMENT) return fieldsOf(selection.selectionSet, document);
    const fragment = document.definitions.find(
      (definition) => definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === selection.name.value,
    );
    return fragment?.kind === Kind.FRAGMENT_DEFINITION ? fieldsOf(fragment.selectionSet, document) : [];
  });
}
