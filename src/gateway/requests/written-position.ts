import type { Plugin } from 'graphql-yoga';
import { laterToken, type PositionToken, tokenText } from '../../events/position-token.ts';
import type { TransportContext } from './transport-context.ts';

/** The response header of a mutation with the position of its last append, as in its payload. */
export const positionHeader = 'refold-position';

/** Keyed by request or message, because the operation's context is gone when the response is written. */
const writtenBy = new WeakMap<object, PositionToken>();

/** Records the position that a command of the request's operation wrote. */
export function noteWritten(transport: TransportContext, token: PositionToken): void {
  const key = keyOf(transport);
  if (!key) return; // nothing asks for it
  const before = writtenBy.get(key);
  writtenBy.set(key, before ? laterToken(before, token) : token);
}

/** Returns the last position that the operation's commands wrote; undefined if none succeeded. */
export function writtenPosition(transport: TransportContext): string | undefined {
  const key = keyOf(transport);
  const token = key && writtenBy.get(key);
  return token && tokenText(token);
}

function keyOf({ request, message }: TransportContext): object | undefined {
  return request ?? message;
}

/** Adds the written position to the response headers, so a client's middleware does not have to parse payloads. */
export function useWrittenPosition(): Plugin {
  return {
    onResponse({ request, response }) {
      const position = writtenPosition({ request });
      if (position !== undefined) response.headers.set(positionHeader, position);
    },
  };
}
