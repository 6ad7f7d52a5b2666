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
 * The differences between graphql 16 and 17. Refold is compiled against the types of 16; the shapes of 17 are asserted only here.
 * graphql-tools, which executes queries for Yoga, makes the same distinction.
 */
const is17 = versionInfo.major >= 17;

/** Variables by name, coerced to their types. */
type Variables = Readonly<Record<string, unknown>>;

/** Returns the variables of the operation that is being executed. */
export function variablesOf({ variableValues }: Pick<GraphQLResolveInfo, 'variableValues'>): Variables {
  return is17 ? (variableValues.coerced as Variables) : variableValues;
}

/** Coerces the variables that a client sent; returns undefined if they do not match the operation. */
export function coerceVariables(
  schema: GraphQLSchema,
  { variableDefinitions }: OperationDefinitionNode,
  sent: Variables,
): Variables | undefined {
  const result = getVariableValues(schema, variableDefinitions ?? [], sent, { maxErrors: 1 }); // one is enough to refuse it
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

/** Returns the events of a subscription, or the errors that refuse it. */
export function sourceEventStream(args: ExecutionArgs): Promise<AsyncIterable<unknown> | ExecutionResult> {
  if (!is17) return createSourceEventStream(args);
  const { validateSubscriptionArgs } = graphql as unknown as {
    validateSubscriptionArgs(args: ExecutionArgs): ExecutionArgs | readonly GraphQLError[];
  };
  const validated = validateSubscriptionArgs(args);
  return 'schema' in validated ? createSourceEventStream(validated) : Promise.resolve({ errors: validated });
}

/** Version 17 reads `sources` only for scalars with `coerceInputLiteral` that accept objects. Refold has none. */
function asAccepted(variables: Variables): Variables {
  return is17 ? { sources: {}, coerced: variables } : variables;
}
