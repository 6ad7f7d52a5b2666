import type { Logger } from 'pino';
import type { AdminRights } from '../../src/config/admin-options.ts';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

/** An application with the admin API, on a database of its own. */
export interface AdminUnderTest {
  readonly database: TestDatabase;
  readonly refold: Refold;
  readonly endpoint: string;
  /** Sends an operation as the caller of this token, by default the one that may do everything. */
  post(query: string, variables?: object, token?: string): Promise<AdminAnswer>;
  /** Sends a subscription. The body of the response is a stream of events. */
  subscribe(query: string, variables?: object, token?: string): Promise<Response>;
  /** The data of an operation that must succeed. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
  data(query: string, variables?: object, token?: string): Promise<any>;
  close(): Promise<void>;
}

export interface AdminAnswer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly data?: any;
  readonly errors?: readonly { readonly message: string; readonly extensions: Record<string, unknown> }[];
}

export const tokens = {
  all: 'token-of-somebody-who-may-do-everything',
  read: 'token-of-somebody-who-may-only-read',
} as const;

export const usualTokens: readonly { name: string; token: string; rights: AdminRights }[] = [
  { name: 'ada', token: tokens.all, rights: 'all' },
  { name: 'rea', token: tokens.read, rights: 'read' },
];

type Options = Parameters<typeof defineConfig>[0];

/**
 * With `before`, an application with all roles runs first, and then only a gateway: nothing changes by itself, except what the test does.
 */
export async function startAdmin(
  options: Options,
  before?: (refold: Refold) => Promise<void>,
  logger?: Logger,
): Promise<AdminUnderTest> {
  const database = await createTestDatabase();
  if (before) {
    const refold = await createRefold(
      defineConfig({ ...options, database: { url: database.url }, gateway: { port: 0 } }),
      { name: 'worker' },
    );
    await before(refold).finally(() => refold.stop());
  }
  const refold = await createRefold(
    defineConfig({
      ...options,
      database: { url: database.url, ...options.database },
      gateway: { port: 0, admin: { tokens: usualTokens }, ...options.gateway },
    }),
    { name: 'admin-test', role: before ? 'gateway' : 'all', ...(logger ? { logger } : {}) },
  );
  const endpoint = `${refold.url}/admin/graphql`;
  const send = (query: string, variables: object, token: string, accept: string) =>
    fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept, authorization: `Bearer ${token}` },
      body: JSON.stringify({ query, variables }),
    });
  const post: AdminUnderTest['post'] = async (query, variables = {}, token = tokens.all) => {
    const response = await send(query, variables, token, '*/*');
    const answer = (await response.json()) as Pick<AdminAnswer, 'data' | 'errors'>;
    return { status: response.status, headers: response.headers, ...answer };
  };
  return {
    database,
    refold,
    endpoint,
    post,
    subscribe: (query, variables = {}, token = tokens.all) => send(query, variables, token, 'text/event-stream'),
    async data(query, variables, token) {
      const { data, errors } = await post(query, variables, token);
      if (errors) throw new Error(JSON.stringify(errors));
      return data;
    },
    async close() {
      await refold.stop();
      await database.drop();
    },
  };
}
