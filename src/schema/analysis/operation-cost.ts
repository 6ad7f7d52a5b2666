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
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';
import { defaultPageSize } from '../values/page-arguments.ts';
import { ownFields } from './own-fields.ts';

/** The input for the cost of an operation. */
export interface CostedOperation {
  readonly schema: GraphQLSchema;
  readonly operation: OperationDefinitionNode;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  readonly variables: Readonly<Record<string, unknown>>;
}

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
  if (field?.name === 'totalCount' && parent.name.endsWith('Connection')) return 1;
  if (!node.selectionSet || !isCompositeType(type)) return 0;
  const below = costOf(node.selectionSet, type, costed, known);
  // Inside a page; its rows were counted at the field that returns the page.
  if (/(?:Connection|Edge)$/.test(parent.name)) return below;
  const rows = rowsOf(node, field, costed);
  return rows * (1 + below);
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

function rowsOf(node: FieldNode, field: GraphQLField<unknown, unknown> | undefined, costed: CostedOperation): number {
  if (field?.args.some(({ name }) => name === 'first')) return pageLength(node, costed);
  // The application's own list: it has the length of a page, unless its resolver says otherwise.
  if (field && isPlural(field) && ownFields(costed.schema).leading.has(field)) return defaultPageSize;
  const listed = field?.args.find(({ name }) => name === 'ids' || name === 'representations');
  const value = listed && node.arguments?.find(({ name }) => name.value === listed.name)?.value;
  const given = value && valueFromASTUntyped(value, costed.variables);
  return Array.isArray(given) ? given.length : 1;
}

function isPlural({ type }: GraphQLField<unknown, unknown>): boolean {
  return isListType(getNullableType(type)) || getNamedType(type).name.endsWith('Connection');
}

function pageLength(node: FieldNode, costed: CostedOperation): number {
  const lengths = (node.arguments ?? [])
    .filter(({ name }) => name.value === 'first' || name.value === 'last')
    .map(({ value }) => numberIn(value, costed))
    .filter((value) => value !== undefined);
  // A page size that is out of range is refused elsewhere, with a better message.
  return Math.max(lengths[0] ?? defaultPageSize, 0);
}

function numberIn(value: ValueNode, { variables, operation }: CostedOperation): number | undefined {
  if (value.kind === Kind.INT) return Number(value.value);
  if (value.kind !== Kind.VARIABLE) return undefined;
  const name = value.name.value;
  const given = variables[name];
  if (given !== undefined) return typeof given === 'number' ? given : undefined;
  const declared = operation.variableDefinitions?.find(({ variable }) => variable.name.value === name);
  return declared?.defaultValue?.kind === Kind.INT ? Number(declared.defaultValue.value) : undefined;
}
