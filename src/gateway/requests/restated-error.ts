import { GraphQLError, type GraphQLErrorExtensions } from 'graphql';

/** Copies an error with its place in document and result, with another message and without its cause. */
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
