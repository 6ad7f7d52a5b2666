import type { ExecutionResult } from 'graphql';
import { Client } from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, extendSchema, type Refold, RefoldError } from '../../src/index.ts';
import { freePort } from '../support/postgres-cluster.ts';
import { balanceV1, openAccount } from '../support/sample-domain.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let proxy: TcpProxy;
let refold: Refold;

/** From now on, the database refuses connections, and those that are open are reset. */
async function cut(): Promise<void> {
  proxy.retarget(await freePort());
  proxy.cutAll();
}

const extension = extendSchema(({ builder, readModel }) => {
  const balances = readModel('balance');
  builder.queryFields((t) => ({
    balanceWhenCut: t.field({
      type: balances.rowType,
      nullable: true,
      args: { id: t.arg.string({ required: true }) },
      async resolve(_, { id }, context, info) {
        // Once the read model has what was written: otherwise it is waited for.
        await balances.findByKey({ accountId: id }, context, info);
        await cut();
        return balances.findByKey({ accountId: `${id}-other` }, context, info);
      },
    }),
    alwaysWhenCut: t.field({
      type: balances.connectionType,
      args: balances.connectionArgs,
      async resolve(_, args, context, info) {
        await balances.count(null, context, info);
        await cut();
        const page = await balances.findConnection(args, context, info);
        await page.page();
        return page;
      },
    }),
    fails: t.int({ nullable: true, resolve: () => Promise.reject(new Error('A bug.')) }),
    refuses: t.int({
      nullable: true,
      resolve: () => Promise.reject(new RefoldError('BAD_USER_INPUT', 'This is not read.')),
    }),
  }));
  builder.queryFields((t) => ({
    unreadable: t.int({
      nullable: true,
      resolve: () => Promise.reject(new RefoldError('PROJECTION_NOT_READY', 'It has no table. Try again later.')),
    }),
  }));
  builder.mutationFields((t) => ({
    openThenUnknown: t.boolean({
      nullable: true,
      args: { id: t.arg.string({ required: true }) },
      async resolve(_, { id }, { commands }) {
        await commands.execute(openAccount, { accountId: id, owner: 'ada' }, {});
        throw new RefoldError('OUTCOME_UNKNOWN', 'The connection was lost.');
      },
    }),
    openBoth: t.boolean({
      nullable: true,
      args: { id: t.arg.string({ required: true }) },
      async resolve(_, { id }, { commands }) {
        await commands.execute(openAccount, { accountId: id, owner: 'ada' }, {});
        await cut();
        await commands.execute(openAccount, { accountId: `${id}-other`, owner: 'ada' }, {});
        return true;
      },
    }),
    cutFirst: t.boolean({
      nullable: true,
      async resolve() {
        await cut();
        return true;
      },
    }),
  }));
});

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startTcpProxy(Number(new URL(database.url).port));
  refold = await createRefold(
    defineConfig({
      database: { url: proxy.through(database.url) },
      gateway: { port: 0 },
      projections: [balanceV1],
      commands: [openAccount],
      schema: extension,
    }),
    { logger: pino({ level: 'silent' }) },
  );
});
afterAll(async () => {
  await refold?.stop();
  await proxy?.close();
  await database?.drop();
});

interface Told {
  readonly status: number;
  readonly position: string | null;
  readonly answer: ExecutionResult<Record<string, { readonly position?: string } | null>>;
}

async function send(query: string): Promise<Told> {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const answer = (await response.json()) as Told['answer']; // by the API
  return { status: response.status, position: response.headers.get('refold-position'), answer };
}

const isUp = async () => (await send('{ balances(first: 1) { totalCount } }')).answer.errors === undefined;

/** The positions of a stream's events, read past the proxy. */
async function written(streamId: string): Promise<readonly string[]> {
  const client = new Client({ connectionString: database.superuserUrl });
  await client.connect();
  const text = 'select position::text as position from refold.events where stream_id = $1';
  const { rows } = await client.query<{ readonly position: string }>({ text, values: [streamId] });
  await client.end();
  return rows.map(({ position }) => position);
}

let last = 0;
const open = (id: string, selection: string) =>
  `openAccount(input: { accountId: "${id}", owner: "ada" }) { position ${selection} }`;

test.each([
  ['a row', (id: string) => open(id, `query { balanceWhenCut(id: "${id}") { owner } }`), 'PARTLY_DONE'],
  ['a list that is never null', (id: string) => open(id, 'query { alwaysWhenCut { totalCount } }'), 'PARTLY_DONE'],
  ["the application's second command", (id: string) => `openBoth(id: "${id}")`, 'PARTLY_DONE'],
  [
    'a second command that the database did not answer',
    (id: string) => `openThenUnknown(id: "${id}")`,
    'OUTCOME_UNKNOWN',
  ],
  ['a read model without its table', (id: string) => open(id, 'query { unreadable }'), 'PARTLY_DONE'],
  ['a field that fails', (id: string) => open(id, 'query { fails }'), 'INTERNAL_SERVER_ERROR'],
  ['a field that refuses', (id: string) => open(id, 'query { refuses }'), 'BAD_USER_INPUT'],
])('a written command is never called not done: %s', async (_, fieldOf, code) => {
  await until(isUp);
  const id = `account-${++last}`;
  const { status, position, answer } = await send(`mutation { ${fieldOf(id)} }`);
  proxy.retarget(Number(new URL(database.url).port));
  const rows = await written(id);
  expect(rows).toHaveLength(1);
  expect(status).toBe(200);
  expect(answer.errors).toHaveLength(1);
  const [error] = answer.errors ?? [];
  expect(error?.message).toMatch(new RegExp(`(The|A) command was written, at position ${position}`));
  expect(error?.message).not.toMatch(/nothing was|try again|retry|send it again with/i);
  expect(error?.extensions).toMatchObject({ code, written: position });
  expect(error?.extensions).not.toHaveProperty('retriable');
  expect(position).toMatch(new RegExp(`^${rows[0]}\\b`));
  if (answer.data?.openAccount !== undefined) expect(answer.data.openAccount).toMatchObject({ position });
});

test('a command that was not written is called not done, and says what the operation has written elsewhere', async () => {
  await until(isUp);
  const [first, second] = [`account-${++last}`, `account-${++last}`];
  const { status, position, answer } = await send(
    `mutation { first: ${open(first, '')} cutFirst second: ${open(second, '')} }`,
  );
  proxy.retarget(Number(new URL(database.url).port));
  expect(status).toBe(200);
  expect(answer.data).toEqual({ first: { position }, cutFirst: true, second: null });
  expect(answer.errors).toMatchObject([
    { path: ['second'], extensions: { code: 'DATABASE_UNAVAILABLE', operationWritten: position } },
  ]);
  await until(isUp);
  // Alone, it is refused as before, and nothing is written.
  const alone = await send(`mutation { cutFirst second: ${open(second, '')} }`);
  proxy.retarget(Number(new URL(database.url).port));
  expect(alone.answer.errors?.[0]?.extensions).toEqual({ code: 'DATABASE_UNAVAILABLE', retriable: true });
  expect(await written(second)).toEqual([]);
});
