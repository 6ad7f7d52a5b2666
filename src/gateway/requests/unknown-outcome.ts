import type { ServerResponse } from 'node:http';
import { GraphQLError } from 'graphql';

const mutations = new WeakSet<ServerResponse>();

/** Notes that a mutation begins to execute: from now on, what it writes may be written. */
export function beginMutation(response: ServerResponse): void {
  mutations.add(response);
}

/** Whether a mutation that gets this response has begun to execute. */
export function hasBegunMutation(response: ServerResponse): boolean {
  return mutations.has(response);
}

/** For an operation that the process can't wait for when it stops. Only a mutation may have written something. */
export function stoppedBeforeAnswer(isMutation: boolean): GraphQLError {
  if (!isMutation)
    return new GraphQLError('This process is stopping. Nothing was done. Try again.', {
      extensions: { code: 'RATE_LIMITED' },
    });
  return new GraphQLError(
    'The process stopped before it had the answer. What the mutation writes may have been written: send it again with the same idempotencyKey.',
    { extensions: { code: 'OUTCOME_UNKNOWN' } },
  );
}
