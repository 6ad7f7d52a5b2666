import type { ServerResponse } from 'node:http';
import type { Viewer } from '../../access.ts';

interface Connection {
  readonly socket?: { readonly remoteAddress?: string | undefined };
}

/** What a transport adds to an operation's context. Empty if the operation comes from this process. */
export interface TransportContext {
  /** The HTTP request. */
  readonly request?: { readonly headers: { get(name: string): string | null } };
  /** The HTTP request as node:http has it. */
  readonly req?: Connection;
  /** The response, if yoga writes it. */
  readonly res?: ServerResponse;
  /** The request that opened the WebSocket. */
  readonly socketRequest?: Connection;
  /** The headers of the request that opened the WebSocket. */
  readonly socketHeaders?: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The payload of `connection_init`. */
  readonly connectionParams?: Readonly<Record<string, unknown>>;
  /** A unique object for each operation that came by WebSocket or from this process. */
  readonly message?: object;
  /** Set if the operation comes from this process. `system` may do everything. */
  readonly viewer?: Viewer | 'system';
}

/** A browser can't set headers of a WebSocket, so Refold's own may be connection parameters. */
export function headerOf(
  { request, socketHeaders, connectionParams }: TransportContext,
  name: string,
): string | undefined {
  if (request) return request.headers.get(name) ?? undefined;
  const value = (name.startsWith('refold-') ? connectionParams?.[name] : undefined) ?? socketHeaders?.[name];
  return typeof value === 'string' ? value : undefined;
}
