import { GraphQLError } from 'graphql';

/** For an operation that the process can't wait for when it stops: what a mutation writes may be written or not. */
export function stoppedBeforeAnswer(): GraphQLError {
  return new GraphQLError(
    'The process stopped before it had the answer. What a mutation writes may have been written: send it again with the same idempotencyKey.',
    { extensions: { code: 'OUTCOME_UNKNOWN' } },
  );
}
