import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createClient } from 'graphql-ws';
import { expect, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { type CliProcess, startCli } from '../support/cli.ts';
import { userFolder } from './application-file.ts';

const refold = resolve('src/index.ts');

const basket = (version: number, more = '') => `
  import { defineProjection, t } from '${refold}';
  import { weight } from './weight.ts';
  import { cart } from './events.ts';
  export const basketV${version} = defineProjection({
    name: 'basket',
    version: ${version},
    events: cart,
    table: { cartId: t.text().primaryKey(), count: t.integer()${more} },
    key: ({ streamId }) => streamId,
    evolve: {
      ItemAdded: (row, { payload }) => ({ count: (row?.count ?? 0) + payload.quantity * weight * 1 }),
    },
  });
`;

/** The files of a small application, each declaration in its own. */
export const devFiles: Readonly<Record<string, string>> = {
  'events.ts': `
  import { defineEvents } from '${refold}';
  import { z } from 'zod';
  export const cart = defineEvents('cart', { ItemAdded: z.object({ name: z.string(), quantity: z.int() }) });
`,
  'weight.ts': 'export const weight = 1;\n',
  'basket.v1.ts': basket(1),
  'total.v1.ts': `
  import { defineProjection, t } from '${refold}';
  import { cart } from './events.ts';
  export const totalV1 = defineProjection({
    name: 'total',
    version: 1,
    mode: 'inline',
    events: cart,
    table: { cartId: t.text().primaryKey(), sum: t.integer() },
    key: ({ streamId }) => streamId,
    evolve: { ItemAdded: (row, { payload }) => ({ sum: (row?.sum ?? 0) + payload.quantity * 1 }) },
  });
`,
  'commands.ts': `
  import { defineCommand } from '${refold}';
  import { z } from 'zod';
  import { cart } from './events.ts';
  export const addItem = defineCommand({
    name: 'addItem',
    input: z.object({ cartId: z.string(), name: z.string(), quantity: z.int() }),
    events: cart,
    stream: ({ cartId }) => cartId,
    decide: ({ cartId, ...payload }) => ({ type: 'ItemAdded', payload }),
  });
`,
  'refold.config.ts': `
  import { defineConfig } from '${refold}';
  import { basketV1 } from './basket.v1.ts';
  import { addItem } from './commands.ts';
  import { totalV1 } from './total.v1.ts';
  export default defineConfig({
    projections: [basketV1, totalV1],
    commands: [addItem],
    gateway: { positionTimeout: 300_000 },
  });
`,
};

/** The second version of the basket, with a column that the first does not have. */
export const basketV2 = basket(2, ', label: t.text().default("none")');

export interface DevApplication {
  readonly folder: string;
  readonly process: CliProcess;
  readonly url: string;
  read(file: string): Promise<string>;
  write(file: string, text: string): Promise<void>;
  /** Replaces a text that the file has once. */
  edit(file: string, from: string, to: string): Promise<void>;
  ask(query: string): Promise<{ readonly data?: unknown; readonly errors?: readonly { readonly message: string }[] }>;
  add(quantity: number): Promise<void>;
  /** Follows a subscription over one WebSocket, which does not reconnect. */
  follow(query: string): Followed;
}

export interface Followed {
  readonly messages: readonly unknown[];
  /** Why it has ended; undefined while it is open. */
  readonly ended: unknown;
}

/** `refold dev` in a folder of its own. */
export async function startDev(
  databaseUrl: string,
  cliArguments: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<DevApplication> {
  const folder = await userFolder(devFiles);
  const environment = { DATABASE_URL: databaseUrl, PORT: '0', LOG_LEVEL: 'warn', LOG_FORMAT: 'text', ...env };
  const process = startCli(['dev', ...cliArguments], { cwd: folder, env: environment });
  const url = await process.url();
  const read = (file: string) => readFile(join(folder, file), 'utf8');
  const write = async (file: string, text: string) => {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  };
  const ask: DevApplication['ask'] = async (query) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    return (await response.json()) as Awaited<ReturnType<DevApplication['ask']>>; // a GraphQL response
  };
  return {
    ...{ folder, process, url, read, write, ask },
    async edit(file, from, to) {
      const text = await read(file);
      expect(text.split(from), `${file} has '${from}' once`).toHaveLength(2);
      await write(file, text.replace(from, to));
    },
    async add(quantity) {
      const input = `{ cartId: "a", name: "Mug", quantity: ${quantity} }`;
      const { data, errors } = await ask(`mutation { addItem(input: ${input}) { position } }`);
      expect({ data, errors }).toEqual({ data: { addItem: { position: expect.any(String) } } });
    },
    follow(query) {
      const messages: unknown[] = [];
      let ended: unknown;
      const client = createClient({
        url: `${url.replace('http', 'ws')}/graphql`,
        webSocketImpl: WebSocket,
        retryAttempts: 0,
      });
      client.subscribe(
        { query },
        {
          next: (message) => messages.push(message),
          error: (error) => {
            ended = error;
          },
          complete: () => {
            ended ??= 'completed';
          },
        },
      );
      onTestFinished(() => client.dispose() as Promise<void>);
      return {
        messages,
        get ended() {
          return ended;
        },
      };
    },
  };
}
