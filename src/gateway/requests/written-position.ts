import type { Plugin } from 'graphql-yoga';
import { laterToken, type PositionToken, tokenText } from '../../events/position-token.ts';
import type { TransportContext } from './transport-context.ts';

/** The response header of a mutation: the position of its last append, as its payload has it. */
export const positionHeader = 'refold-position';

/** By request, since the answer is written where the operation's own context is gone. */
const writtenBy = new WeakMap<object, PositionToken>();

/** A command of the request's operation wrote up to here. */
export function noteWritten({ request }: TransportContext, token: PositionToken): void {
  if (!request) return; // no HTTP answer carries it
  const before = writtenBy.get(request);
  writtenBy.set(request, before ? laterToken(before, token) : token);
}

/** The position that the request's commands wrote up to; undefined if none succeeded. */
export function writtenPosition(request: object | undefined): string | undefined {
  const token = request && writtenBy.get(request);
  return token && tokenText(token);
}

/** Names the position of what was written in a header, so that a client's middleware needs not look into payloads. */
export function useWrittenPosition(): Plugin {
  return {
    onResponse({ request, response }) {
      const position = writtenPosition(request);
      if (position !== undefined) response.headers.set(positionHeader, position);
    },
  };
}
