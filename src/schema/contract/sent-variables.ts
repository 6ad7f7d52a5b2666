import { type OperationDefinitionNode, valueFromASTUntyped } from 'graphql';

type Variables = Readonly<Record<string, unknown>>;

/** Returns the variables of an operation in the form in which clients send them, with the defaults of those that were not sent. */
export function sentVariables(
  { variableDefinitions = [] }: OperationDefinitionNode,
  sent: Variables | null | undefined,
): Variables {
  const defaults = variableDefinitions.flatMap(({ variable, defaultValue }) =>
    defaultValue ? [[variable.name.value, valueFromASTUntyped(defaultValue)] as const] : [],
  );
  return { ...Object.fromEntries(defaults), ...sent };
}
