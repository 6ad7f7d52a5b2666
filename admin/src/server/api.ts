import type { Right, TypedDocumentString } from '../gql/graphql.ts';
import { readEvents } from './event-stream.ts';
import { session, signOut } from './session.ts';

/** An error that the admin API answered with, or that kept it from answering. */
export class ApiError extends Error {
  /** `extensions.code`; `UNREACHABLE` if there was no answer. */
  readonly code: string;
  /** The right that the token lacks. */
  readonly right: Right | undefined;

  constructor(message: string, code: string, right?: Right) {
    super(message);
    this.code = code;
    this.right = right;
  }
}

interface Result<R> {
  readonly data?: R | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: { readonly code?: string; readonly right?: Right };
  }[];
}

// Relative to the page, because a proxy may serve it below a prefix.
const endpoint = new URL('graphql', document.baseURI);

/** Runs a query or mutation. */
export async function request<R, V>(
  operation: TypedDocumentString<R, V>,
  variables: V,
  signal?: AbortSignal,
): Promise<R> {
  const response = await send(operation.toString(), variables, 'application/json', signal);
  return dataOf<R>(await response.json().catch(() => unreadable(response)));
}

export interface Listener<R> {
  /** The server accepted the subscription. */
  readonly onOpen?: () => void;
  readonly onData: (data: R) => void;
}

/** Runs a subscription over server-sent events until it completes, fails, or the signal aborts. */
export async function subscribe<R, V>(
  operation: TypedDocumentString<R, V>,
  variables: V,
  { onOpen, onData }: Listener<R>,
  signal: AbortSignal,
): Promise<void> {
  const response = await send(operation.toString(), variables, 'text/event-stream', signal);
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body)
    return onData(dataOf<R>(await response.json().catch(() => unreadable(response))));
  onOpen?.();
  for await (const { event, data } of readEvents(response.body, signal)) {
    if (event === 'complete') return;
    if (event === 'next') onData(dataOf<R>(JSON.parse(data)));
  }
  throw new ApiError('The connection was closed.', 'UNREACHABLE');
}

/** The audit log as a file. */
export async function auditFile(parameters: URLSearchParams): Promise<Blob> {
  const address = new URL(`audit.csv?${parameters}`, document.baseURI);
  const response = await fetch(address, { headers: authorization() }).catch(unreachable);
  if (!response.ok) throw new ApiError(`The server answered with status ${response.status}.`, 'UNREACHABLE');
  return response.blob();
}

async function send(
  query: string,
  variables: unknown,
  accept: string,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const headers = { ...authorization(), accept, 'content-type': 'application/json' };
  const body = JSON.stringify({ query, variables });
  const response = await fetch(endpoint, { method: 'POST', headers, body, signal: signal ?? null }).catch((error) => {
    if (signal?.aborted) throw error;
    return unreachable();
  });
  if (response.status === 401) refused();
  return response;
}

function authorization(): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${session.get().token ?? ''}` };
}

function dataOf<R>({ data, errors }: Result<R>): R {
  const [error] = errors ?? [];
  if (error) {
    const { code = 'INTERNAL_SERVER_ERROR', right } = error.extensions ?? {};
    if (code === 'UNAUTHENTICATED') refused();
    throw new ApiError(error.message, code, right);
  }
  if (!data) throw new ApiError('The response has no data.', 'UNREACHABLE');
  return data;
}

function refused(): never {
  signOut('The server does not accept this token.');
  throw new ApiError('The server does not accept this token.', 'UNAUTHENTICATED');
}

function unreachable(): never {
  throw new ApiError('The server can’t be reached.', 'UNREACHABLE');
}

function unreadable(response: Response): never {
  throw new ApiError(`The server answered with status ${response.status} and no JSON.`, 'UNREACHABLE');
}
