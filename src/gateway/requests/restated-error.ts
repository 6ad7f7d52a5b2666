import { GraphQLError, type GraphQLErrorExtensions } from 'graphql';

/** The same error at the same place in the document and the answer, in other words and without its cause. */
export function restatedError(
  error: GraphQLError | undefined,
  message: string,
  extensions: GraphQLErrorExtensions,
): GraphQLError {
  return new GraphQLError(message, {
    nodes: error?.nodes ?? null,
    source: error?.source ?? null,
    positions: error?.positions ?? null,
    path: error?.path ?? null,
    extensions,
  });
}
