import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type NamedTypeNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { argumentValues } from '../contract/graphql-release.ts';
import { defaultPageSize } from '../values/page-arguments.ts';
import { ownFields } from './own-fields.ts';

/** The input for the cost of an operation. */
export interface CostedOperation {
  readonly schema: GraphQLSchema;
  readonly operation: OperationDefinitionNode;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** Coerced, as the resolvers get them: with defaults, and with a list for a single value. */
  readonly variables: Readonly<Record<string, unknown>>;
}

/** The arguments that say how many rows a field may read. */
export const lengthArguments: ReadonlySet<string> = new Set(['first', 'last', 'ids', 'representations']);

/**
 * Returns the maximum number of rows that an operation may read: 1 for each lookup, id, aggregate and count; the page size for each list,
 * multiplied by the cost of what is selected below it.
 */
export function operationCost(costed: CostedOperation): number {
  const { schema, operation } = costed;
  const root = schema.getRootType(operation.operation);
  return root ? costOf(operation.selectionSet, root, costed, new Map()) : 0;
}

/**
 * The cost of each fragment by the type on which it is spread. Without it, fragments that are spread twice each would take exponential
 * time.
 */
type Known = Map<string, number>;

function costOf(set: SelectionSetNode, parent: GraphQLCompositeType, costed: CostedOperation, known: Known): number {
  let cost = 0;
  for (const selection of set.selections) {
    if (selection.kind === Kind.FIELD) cost += fieldCost(selection, parent, costed, known);
    else if (selection.kind === Kind.INLINE_FRAGMENT)
      cost += costOf(selection.selectionSet, typeOf(selection.typeCondition, parent, costed), costed, known);
    else cost += fragmentCost(selection.name.value, parent, costed, known);
  }
  return cost;
}

function fragmentCost(name: string, parent: GraphQLCompositeType, costed: CostedOperation, known: Known): number {
  const place = `${name} ${parent.name}`;
  const before = known.get(place);
  if (before !== undefined) return before;
  known.set(place, 0); // a cycle, which validation refuses
  const fragment = costed.fragments[name];
  const cost = fragment
    ? costOf(fragment.selectionSet, typeOf(fragment.typeCondition, parent, costed), costed, known)
    : 0;
  known.set(place, cost);
  return cost;
}

function fieldCost(node: FieldNode, parent: GraphQLCompositeType, costed: CostedOperation, known: Known): number {
  const field = isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[node.name.value] : undefined;
  const type = field && getNamedType(field.type);
  const isPage = isPartOfPage(parent);
  if (field?.name === 'totalCount' && isPage) return 1;
  if (!node.selectionSet || !field || !isCompositeType(type)) return 0;
  const below = costOf(node.selectionSet, type, costed, known);
  // Inside a page; its rows were counted at the field that returns the page.
  return isPage ? below : rowsOf(node, field, costed) * (1 + below);
}

/** Whether it is a connection or an edge. A row may have such a name too, but not these fields. */
function isPartOfPage(type: GraphQLCompositeType): boolean {
  if (!isObjectType(type) || !/(?:Connection|Edge)$/.test(type.name)) return false;
  const fields = type.getFields();
  return 'pageInfo' in fields || ('cursor' in fields && 'node' in fields);
}

/** On a row of any type (`node`), fragments select by type. All of them are counted, as if each row were of every type. */
function typeOf(
  condition: NamedTypeNode | undefined,
  parent: GraphQLCompositeType,
  { schema }: CostedOperation,
): GraphQLCompositeType {
  const type = condition && schema.getType(condition.name.value);
  return type && isCompositeType(type) ? type : parent;
}

function rowsOf(node: FieldNode, field: GraphQLField<unknown, unknown>, costed: CostedOperation): number {
  const args = field.args.filter(({ name }) => lengthArguments.has(name));
  const given = args.length === 0 ? {} : lengthsOf({ ...field, args }, node, costed);
  // A page size that is out of range is refused elsewhere, with a better message.
  if (args.some(({ name }) => name === 'first')) return Math.max(given.first ?? given.last ?? defaultPageSize, 0);
  // The application's own list: it has the length of a page, unless its resolver says otherwise.
  if (isPlural(field) && ownFields(costed.schema).leading.has(field)) return defaultPageSize;
  const listed = given.ids ?? given.representations;
  return Array.isArray(listed) ? listed.length : 1;
}

interface Lengths {
  readonly first?: number | null;
  readonly last?: number | null;
  readonly ids?: unknown;
  readonly representations?: unknown;
}

/** Arguments that can't be coerced refuse their field, so it reads nothing. */
function lengthsOf(field: GraphQLField<unknown, unknown>, node: FieldNode, { variables }: CostedOperation): Lengths {
  try {
    return argumentValues(field, node, variables);
  } catch {
    return {};
  }
}

function isPlural({ type }: GraphQLField<unknown, unknown>): boolean {
  return isListType(getNullableType(type)) || getNamedType(type).name.endsWith('Connection');
}
