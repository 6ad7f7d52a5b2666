import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

type Fragments = Readonly<Record<string, FragmentDefinitionNode>>;

const snapshotNeeds = new WeakMap<OperationDefinitionNode, boolean>();

/**
 * Whether an operation may read more than once, so that its answers agree only within one snapshot of the database.
 * A single look-up needs none, and can share its statement with other operations.
 */
export function needsSnapshot(operation: OperationDefinitionNode, document: DocumentNode): boolean {
  const known = snapshotNeeds.get(operation);
  if (known !== undefined) return known;
  const fragments = Object.fromEntries(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
  const reads = readFields(operation, fragments);
  const counts = reads.filter((read) => fieldsOf(read, fragments).some(({ name }) => name.value === 'totalCount'));
  const needed = reads.length + counts.length > 1;
  snapshotNeeds.set(operation, needed);
  return needed;
}

/** The fields of an operation that may read: of the query, of a mutation's payload and of the query in it. Skipped ones too. */
export function readFields(operation: OperationDefinitionNode, fragments: Fragments): readonly FieldNode[] {
  const roots = fieldsOf(operation, fragments);
  const fields =
    operation.operation === 'mutation'
      ? roots
          .flatMap((root) => fieldsOf(root, fragments))
          .flatMap((field) => (field.name.value === 'query' ? fieldsOf(field, fragments) : [field]))
      : roots;
  return fields.filter((field) => field.selectionSet && !field.name.value.startsWith('__'));
}

function fieldsOf(node: { readonly selectionSet?: SelectionSetNode | undefined }, fragments: Fragments) {
  const fields: FieldNode[] = [];
  // Once each: fragments that spread others twice would multiply without end.
  const spread = new Set<string>();
  const visit = (set: SelectionSetNode | undefined): void => {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FIELD) fields.push(selection);
      else if (selection.kind === Kind.INLINE_FRAGMENT) visit(selection.selectionSet);
      else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value);
        visit(fragments[selection.name.value]?.selectionSet);
      }
    }
  };
  visit(node.selectionSet);
  return fields;
}
