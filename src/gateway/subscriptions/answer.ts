import type { ExecutionResult } from 'graphql';
import { withoutHttp } from '../operations/run-operation.ts';

/** What a subscriber is sent of one event. The same object for all who are sent the same, so that it is put into bytes once. */
export interface Answer {
  readonly result: ExecutionResult;
  /** The result as JSON, in UTF-8. */
  readonly json: Buffer;
  /** What a client comes back with that goes on after this one (`Last-Event-ID`). */
  readonly eventId: string | undefined;
}

/** @throws TypeError for a value that JSON can't tell */
export function createAnswer(result: ExecutionResult, eventId?: string): Answer {
  const { errors, ...others } = result;
  const plain = errors ? { errors: errors.map((error) => withoutHttp(error).toJSON()), ...others } : others;
  return { result, json: Buffer.from(JSON.stringify(plain)), eventId };
}
