import { existsSync, readFileSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { RefoldError, type RefoldErrorCode } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';
import type { OperatorApi } from './operator-api.ts';

interface GraphqlAnswer {
  readonly data?: unknown;
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: { readonly code?: string };
  }[];
}

/**
 * The admin API of a running gateway.
 *
 * @param address of a gateway, such as `https://shop.example.com`, or of its admin page as `refold dev` prints it, with the token
 * @throws RefoldError `INVALID_CONFIG` if the address is none, or if there is no token
 */
export function openHttpApi(address: string): OperatorApi {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol))
    throw invalid(`--remote is the URL of a gateway, such as https://shop.example.com; found '${shown(address)}'.`);
  const [, fragmentToken] = /^#token=(.+)$/.exec(url.hash) ?? [];
  const token = fragmentToken ?? tokenOfEnvironment();
  const base = url.origin + url.pathname.replace(/\/(admin\/?)?$/, '');
  const endpoint = `${base}/admin/graphql`;

  async function send(document: string, variables: object, accept: string): Promise<Response> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept };
    const body = JSON.stringify({ query: document, variables });
    const response = await fetch(endpoint, { method: 'POST', headers, body, redirect: 'error' }).catch(
      (cause: unknown) => {
        throw new RefoldError(
          'DATABASE_UNAVAILABLE',
          `'${base}' does not respond: ${networkReason(cause)}`,
          {},
          { cause },
        );
      },
    );
    if (response.status === 401) throw new RefoldError('UNAUTHENTICATED', `'${base}' does not accept the token.`);
    if (response.status === 404)
      throw invalid(`'${base}' serves no admin API: name a gateway, and configure its 'gateway.admin'.`);
    return response;
  }

  return {
    usualReason: undefined,
    async query<T>(document: string, variables = {}) {
      const response = await send(document, variables, 'application/json');
      const answer = (await response.json().catch(() => {
        throw invalid(`'${endpoint}' is no admin API: it answers with status ${response.status}, and no JSON.`);
      })) as GraphqlAnswer;
      // A gateway answers operations of clients there, or it is of another release.
      const invalidHere = answer.errors?.find(({ extensions }) => extensions?.code === 'GRAPHQL_VALIDATION_FAILED');
      if (invalidHere) throw invalid(`'${endpoint}' is no admin API of this release of Refold: ${invalidHere.message}`);
      return dataOf(answer) as T;
    },
    async *subscribe<T>(document: string, variables = {}) {
      const response = await send(document, variables, 'text/event-stream');
      for await (const { event, data } of serverSentEvents(response)) {
        if (event === 'complete') return;
        yield dataOf(JSON.parse(data) as GraphqlAnswer) as T;
      }
      throw new RefoldError('DATABASE_UNAVAILABLE', `'${base}' has ended the connection.`);
    },
  };
}

function dataOf({ data, errors }: GraphqlAnswer): unknown {
  const [error] = errors ?? [];
  if (error)
    throw new RefoldError((error.extensions?.code as RefoldErrorCode | undefined) ?? 'BAD_USER_INPUT', error.message); // that of a RefoldError, or of the gateway
  return data;
}

async function* serverSentEvents(
  response: Response,
): AsyncGenerator<{ readonly event: string; readonly data: string }> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(part)?.[1];
      const data = field('data');
      const event = field('event') ?? 'next';
      if (event === 'complete' || data) yield { event, data: data ?? '' };
    }
  }
  // A refusal before the stream begins is plain JSON.
  if (text.startsWith('{')) yield { event: 'next', data: text };
}

const variable = 'REFOLD_REMOTE_TOKEN';

/** Not an argument: every user of the machine sees the arguments of processes. */
function tokenOfEnvironment(): string {
  if (existsSync('.env')) loadEnvFile('.env');
  const { [variable]: own, [`${variable}_FILE`]: file } = process.env;
  if (own && file) throw invalid(`${variable} and ${variable}_FILE are both set. Set one of them.`);
  if (own) return own;
  if (!file)
    throw invalid(`--remote needs a token of the admin API: set ${variable}, or ${variable}_FILE to its file.`);
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw invalid(`${variable}_FILE names '${file}', which can't be read: ${networkReason(error)}`);
  }
}

function networkReason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return reasonOf(cause);
}

/** Without what may be a token. */
function shown(address: string): string {
  return address.replace(/#.*/, '');
}

function invalid(message: string): RefoldError<'INVALID_CONFIG'> {
  return new RefoldError('INVALID_CONFIG', message);
}
