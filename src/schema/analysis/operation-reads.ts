import {
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import { ownFields } from './own-fields.ts';
import { type Fragments, walkFields } from './selection-walk.ts';

const severalReads = new WeakMap<OperationDefinitionNode, boolean>();
const allNames = new WeakMap<OperationDefinitionNode, ReadonlySet<string>>();
const relationNames = new WeakMap<VersionMap, ReadonlySet<string>>();

/**
 * Whether an operation may read more than once, so that it needs one snapshot for consistent results. A single lookup needs none, and can
 * share its statement with other operations. A field that the application added may read any number of times.
 */
export function needsSnapshot(
  operation: OperationDefinitionNode,
  document: DocumentNode,
  { schema, versions }: { readonly schema: GraphQLSchema; readonly versions: VersionMap },
): boolean {
  const known = severalReads.get(operation) ?? mayReadTwice(operation, document);
  severalReads.set(operation, known);
  const selected = allNames.get(operation) ?? new Set<string>();
  return (
    known || selectsRelation(selected, versions) || [...ownFields(schema).reading].some((name) => selected.has(name))
  );
}

function mayReadTwice(operation: OperationDefinitionNode, document: DocumentNode): boolean {
  const fragments = Object.fromEntries(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
  const reads = readFields(operation, fragments);
  const counts = reads.filter((read) => fieldsOf(read, fragments).some(({ name }) => name.value === 'totalCount'));
  selectedNames(operation, fragments); // caches the names
  // Each may read several tables.
  const several = reads.filter(({ name }) => name.value === 'nodes' || name.value === '_entities');
  return reads.length + counts.length + several.length > 1;
}

/** By name only: a field with the name of a relation costs a snapshot at worst. */
function selectsRelation(selected: ReadonlySet<string>, versions: VersionMap): boolean {
  const relations =
    relationNames.get(versions) ??
    new Set([...versions.served.values()].flatMap(({ projection }) => Object.keys(projection.relations)));
  relationNames.set(versions, relations);
  return [...relations].some((name) => selected.has(name));
}

/** Returns the names of all fields of an operation at any depth, including skipped ones. */
export function selectedNames(operation: OperationDefinitionNode, fragments: Fragments): ReadonlySet<string> {
  const known = allNames.get(operation);
  if (known) return known;
  const names = new Set<string>();
  walkFields(operation.selectionSet, fragments, (field) => {
    names.add(field.name.value);
    return 'below';
  });
  allNames.set(operation, names);
  return names;
}

/**
 * Returns the fields of an operation that may read: those of the query, of a mutation's payload and of the query in it. Includes skipped
 * ones.
 */
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
  walkFields(node.selectionSet, fragments, (field) => {
    fields.push(field);
    return 'next';
  });
  return fields;
}
