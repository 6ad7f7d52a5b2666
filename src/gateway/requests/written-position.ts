import type { Plugin } from 'graphql-yoga';
import { laterToken, type PositionToken, tokenText } from '../../events/position-token.ts';
import type { TransportContext } from './transport-context.ts';

/** The response header of a mutation with the position of its last append, as in its payload. */
export const positionHeader = 'refold-position';

/** Keyed by request, because the operation's context is gone when the response is written. */
const writtenBy = new WeakMap<object, PositionToken>();

/** Records the position that a command of the request's operation wrote. */
export function noteWritten({ request }: TransportContext, token: PositionToken): void {
  if (!request) return; // there is no HTTP response to carry it
  const before = writtenBy.get(request);
  writtenBy.set(request, before ? laterToken(before, token) : token);
}

/** Returns the last position that the request's commands wrote; undefined if none succeeded. */
export function writtenPosition(request: object | undefined): string | undefined {
  const token = request && writtenBy.get(request);
  return token && tokenText(token);
}

/** Adds the written position to the response headers, so a client's middleware does not have to parse payloads. */
export function useWrittenPosition(): Plugin {
  return {
    onResponse({ request, response }) {
      const position = writtenPosition(request);
      if (position !== undefined) response.headers.set(positionHeader, position);
    },
  };
}
