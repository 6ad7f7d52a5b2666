import type { Viewer } from '../../access.ts';

interface Connection {
  readonly socket?: { readonly remoteAddress?: string | undefined };
}

/** What a transport leaves in an operation's context; nothing where the operation comes from this process. */
export interface TransportContext {
  /** Of an HTTP request. */
  readonly request?: { readonly headers: { get(name: string): string | null } };
  /** The same as node:http has it. */
  readonly req?: Connection;
  /** Of the request that opened a WebSocket. */
  readonly socketRequest?: Connection;
  /** Of the request that opened a WebSocket. */
  readonly socketHeaders?: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** What a WebSocket client sent to begin with. */
  readonly connectionParams?: Readonly<Record<string, unknown>>;
  /** One object for each operation that came by WebSocket. */
  readonly message?: object;
  /** Set where the operation comes from this process; `system` may do everything. */
  readonly viewer?: Viewer | 'system';
}

export function headerOf({ request, socketHeaders }: TransportContext, name: string): string | undefined {
  if (request) return request.headers.get(name) ?? undefined;
  const value = socketHeaders?.[name];
  return typeof value === 'string' ? value : undefined;
}
