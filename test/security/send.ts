import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { WebSocket } from 'ws';
import type { Target } from './target.ts';

export interface Operation {
  readonly query?: unknown;
  /** A text is sent unchanged. */
  readonly variables?: unknown;
  readonly operationName?: unknown;
  readonly extensions?: unknown;
}

/** The reply: the status (0 if a transport has none), everything that was sent, and the codes of its errors. */
export interface Reply {
  readonly status: number;
  readonly all: string;
  readonly codes: readonly string[];
  readonly body: string;
}

/** Called with the reply so far, each time that more of it arrives. */
type Heard = (soFar: string) => void;

interface HttpRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  /** Sends no content-length. */
  readonly chunked?: boolean;
  readonly heard?: Heard | undefined;
}

/** An HTTP request on its own connection. */
export async function sendHttp({ port }: Target, given: HttpRequest): Promise<Reply> {
  const { method = 'POST', path = '/graphql', headers = {}, body, chunked = false, heard } = given;
  const length = body === undefined || chunked ? {} : { 'content-length': Buffer.byteLength(body) };
  const request = httpRequest({
    port,
    host: '127.0.0.1',
    method,
    path,
    agent: false,
    headers: { ...length, ...headers },
  });
  const response = once(request, 'response');
  if (body !== undefined) request.write(body);
  request.end();
  const [message] = (await response) as [IncomingMessage];
  let all = '';
  for await (const part of message.setEncoding('utf8')) {
    all += part;
    heard?.(all);
  }
  return replyOf(message.statusCode ?? 0, message.rawHeaders.join('\n'), all);
}

/** Sends raw bytes; returns what comes back until the connection ends. */
export async function sendBytes({ port }: { readonly port: number }, bytes: string | Buffer): Promise<Reply> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {}); // what was read until then is the reply
  socket.write(bytes);
  let all = '';
  socket.setEncoding('latin1');
  socket.on('data', (part: string) => {
    all += part;
  });
  await new Promise((resolve) => socket.once('close', resolve));
  const [head = '', body = ''] = all.split('\r\n\r\n', 2);
  return replyOf(Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), head, body);
}

/** With the media type whose statuses show the outcome of an operation. */
const json = { 'content-type': 'application/json', accept: 'application/graphql-response+json' };

/** JSON, also for variables that are nested too deep for JSON.stringify. */
function written({ variables, ...operation }: Operation): string {
  const text = typeof variables === 'string' ? variables : JSON.stringify(variables);
  const rest = JSON.stringify(operation);
  return text === undefined ? rest : `${rest.slice(0, -1)}${rest === '{}' ? '' : ','}"variables":${text}}`;
}

/** Every transport of an operation to the gateway. */
export const transports = {
  'a plain POST': (target: Target, operation: Operation, headers: OutgoingHttpHeaders) =>
    sendHttp(target, { headers: { ...json, ...headers }, body: written(operation) }),
  'a POST in chunks': (target: Target, operation: Operation, headers: OutgoingHttpHeaders) =>
    sendHttp(target, { headers: { ...json, ...headers }, body: written(operation), chunked: true }),
  'a GET': (target: Target, operation: Operation, headers: OutgoingHttpHeaders) => {
    const parameters = Object.entries(operation).map(([name, value]): [string, string] => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]);
    return sendHttp(target, {
      method: 'GET',
      path: `/graphql?${new URLSearchParams(parameters)}`,
      headers: { ...headers, accept: json.accept },
    });
  },
  'server-sent events': (target: Target, operation: Operation, headers: OutgoingHttpHeaders, heard?: Heard) =>
    sendHttp(target, {
      headers: { ...json, ...headers, accept: 'text/event-stream' },
      body: written(operation),
      heard,
    }),
  'a shared stream': async (target: Target, operation: Operation, headers: OutgoingHttpHeaders) => {
    const path = '/graphql/stream';
    const reserved = await sendHttp(target, { method: 'PUT', path, headers });
    if (reserved.status !== 201) return { ...reserved, status: 0 };
    const own = { ...headers, 'x-graphql-event-stream-token': reserved.body };
    const opening = httpRequest({
      ...{ port: target.port, host: '127.0.0.1', path, agent: false },
      headers: { ...own, accept: 'text/event-stream' },
    });
    opening.on('error', () => {}); // it is left
    const [stream] = (await once(opening.end(), 'response')) as [IncomingMessage];
    let all = '';
    const completed = new Promise<void>((resolve) => {
      stream.setEncoding('utf8').on('data', (part: string) => {
        all += part;
        if (all.includes('event: complete')) resolve();
      });
    });
    const body = written({ ...operation, extensions: { ...(operation.extensions ?? {}), operationId: '1' } });
    const { status, ...answer } = await sendHttp(target, { path, headers: { ...json, ...own }, body });
    if (status === 202) await completed;
    opening.destroy();
    return status === 202 ? replyOf(0, answer.all, all) : { ...answer, status: 0 };
  },
  'a WebSocket': async (target: Target, operation: Operation, headers: OutgoingHttpHeaders, heard?: Heard) => {
    const socket = openSocket(target, headers);
    await once(socket, 'open');
    const messages: string[] = [];
    socket.on('message', (data) => {
      const message = String(data);
      messages.push(message);
      const { type } = JSON.parse(message);
      if (type === 'connection_ack') socket.send(`{"id":"1","type":"subscribe","payload":${written(operation)}}`);
      if (type === 'error' || type === 'complete') socket.close();
      heard?.(messages.join('\n'));
    });
    socket.send(JSON.stringify({ type: 'connection_init' }));
    const [code, reason] = await once(socket, 'close');
    return replyOf(0, `${code} ${reason}`, messages.join('\n'));
  },
} as const;

export type Transport = keyof typeof transports;

export function openSocket({ url }: Target, headers: OutgoingHttpHeaders = {}, protocol = 'graphql-transport-ws') {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, protocol, { headers: headers as never }); // strings
  socket.on('error', () => {}); // its close shows it
  return socket;
}

function replyOf(status: number, head: string, body: string): Reply {
  // In the order of the response; a reply may be several messages.
  const codes = [...body.matchAll(/"code":"([^"]+)"/g)].map(([, code = '']) => code);
  return { status, all: `${head}\n\n${body}`, codes, body };
}
