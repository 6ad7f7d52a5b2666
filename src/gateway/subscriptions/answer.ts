import type { ExecutionResult } from 'graphql';
import { withoutHttp } from '../operations/run-operation.ts';

/** The answer to one event. Subscribers with the same answer share the object, so it is serialized once. */
export interface Answer {
  readonly result: ExecutionResult;
  /** The result as JSON, in UTF-8. */
  readonly json: Buffer;
  /** The event id that a client sends to resume after this answer (`Last-Event-ID`). */
  readonly eventId: string | undefined;
}

/** @throws TypeError for a value that JSON cannot represent */
export function createAnswer(result: ExecutionResult, eventId?: string): Answer {
  const { errors, ...others } = result;
  const plain = errors ? { errors: errors.map((error) => withoutHttp(error).toJSON()), ...others } : others;
  return { result, json: Buffer.from(JSON.stringify(plain)), eventId };
}
