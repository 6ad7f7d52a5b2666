import * as graphql from 'graphql';
import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  type FieldNode,
  type GraphQLDirective,
  type GraphQLError,
  type GraphQLField,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getArgumentValues,
  getDirectiveValues,
  getVariableValues,
  type OperationDefinitionNode,
  type SelectionNode,
  versionInfo,
} from 'graphql';

/**
 * What graphql 16 and 17 do differently. Refold is compiled against the types of 16, so the shapes of 17 are asserted here, and only here.
 * graphql-tools, which executes queries for Yoga, makes the same distinction.
 */
const is17 = versionInfo.major >= 17;

/** Variables by name, coerced to their types. */
type Variables = Readonly<Record<string, unknown>>;

/** The variables of the operation that is being executed. */
export function variablesOf({ variableValues }: Pick<GraphQLResolveInfo, 'variableValues'>): Variables {
  return is17 ? (variableValues.coerced as Variables) : variableValues;
}

/** The variables that a client has sent, coerced; undefined if they do not fit the operation. */
export function coerceVariables(
  schema: GraphQLSchema,
  { variableDefinitions }: OperationDefinitionNode,
  sent: Variables,
): Variables | undefined {
  const result = getVariableValues(schema, variableDefinitions ?? [], sent);
  if (!is17) return result.coerced;
  const { variableValues } = result as { readonly variableValues?: { readonly coerced: Variables } };
  return variableValues?.coerced;
}

export function argumentValues(
  field: GraphQLField<unknown, unknown>,
  node: FieldNode,
  variables: Variables = {},
): Variables {
  return getArgumentValues(field, node, asAccepted(variables));
}

export function directiveValues(
  directive: GraphQLDirective,
  node: OperationDefinitionNode | SelectionNode,
  variables: Variables = {},
): Variables | undefined {
  return getDirectiveValues(directive, node, asAccepted(variables));
}

/** The events of a subscription; what refuses it, otherwise. */
export function sourceEventStream(args: ExecutionArgs): Promise<AsyncIterable<unknown> | ExecutionResult> {
  if (!is17) return createSourceEventStream(args);
  const { validateSubscriptionArgs } = graphql as unknown as {
    validateSubscriptionArgs(args: ExecutionArgs): ExecutionArgs | readonly GraphQLError[];
  };
  const validated = validateSubscriptionArgs(args);
  return 'schema' in validated ? createSourceEventStream(validated) : Promise.resolve({ errors: validated });
}

/** 17 reads `sources` only for scalars with `coerceInputLiteral` that take objects: no scalar of Refold is one. */
function asAccepted(variables: Variables): Variables {
  return is17 ? { sources: {}, coerced: variables } : variables;
}
