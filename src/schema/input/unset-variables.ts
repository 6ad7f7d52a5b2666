import {
  type ConstDirectiveNode,
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLIncludeDirective,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getDirectiveValues,
  getNamedType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  type ValueNode,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { badInput } from '../values/canonical-input.ts';

type Variables = Readonly<Record<string, unknown>>;

/**
 * Refuses a condition with a variable that was not given. GraphQL leaves such a member out, and the condition would hold for more rows than the
 * client meant, perhaps for all. A whole `where` may be left out.
 *
 * @throws RefoldError `BAD_USER_INPUT` that names the place
 */
export function checkConditions(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  given: Variables | null | undefined,
): void {
  const variables = given ?? {};
  const unset = new Set<string>();
  for (const { variable, defaultValue } of operation.variableDefinitions ?? [])
    if (defaultValue === undefined && variables[variable.name.value] === undefined) unset.add(variable.name.value);
  if (unset.size === 0) return;
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  checkPart(operation, { schema, fragments, variables, unset, seen: new Set() });
}

interface Walk {
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly variables: Variables;
  readonly unset: ReadonlySet<string>;
  /** Names of fragments. */
  readonly seen: Set<string>;
}

function checkPart(part: OperationDefinitionNode | FragmentDefinitionNode, walk: Walk): void {
  const typeInfo = new TypeInfo(walk.schema);
  const checkValue = ({ name, value }: { readonly name: { readonly value: string }; readonly value: ValueNode }) => {
    if (value.kind === Kind.VARIABLE || getNamedType(typeInfo.getInputType())?.extensions.isCondition !== true) return;
    for (const [variable, path] of variablesIn(value, name.value))
      if (walk.unset.has(variable))
        throw badInput(
          `'${path}' is the variable '$${variable}', which has no value; leave the condition out instead.`,
        );
  };
  const skipLeftOut = (node: { readonly directives?: readonly object[] | undefined }) =>
    isLeftOut(node, walk.variables) ? false : undefined;
  visit(
    part,
    visitWithTypeInfo(typeInfo, {
      Field: skipLeftOut,
      InlineFragment: skipLeftOut,
      FragmentSpread(node) {
        const { value: name } = node.name;
        const fragment = walk.fragments.get(name);
        if (isLeftOut(node, walk.variables) || !fragment || walk.seen.has(name)) return;
        walk.seen.add(name);
        checkPart(fragment, walk);
      },
      Argument: checkValue,
      ObjectField: checkValue,
    }),
  );
}

function* variablesIn(value: ValueNode, path: string): Generator<readonly [name: string, path: string]> {
  if (value.kind === Kind.VARIABLE) yield [value.name.value, path];
  if (value.kind === Kind.LIST)
    for (const [index, entry] of value.values.entries()) yield* variablesIn(entry, `${path}[${index}]`);
  if (value.kind === Kind.OBJECT)
    for (const { name, value: part } of value.fields) yield* variablesIn(part, `${path}.${name.value}`);
}

function isLeftOut(node: object, variables: Variables): boolean {
  const of = node as { readonly directives?: readonly ConstDirectiveNode[] }; // of a document
  return (
    getDirectiveValues(GraphQLSkipDirective, of, variables)?.if === true ||
    getDirectiveValues(GraphQLIncludeDirective, of, variables)?.if === false
  );
}
