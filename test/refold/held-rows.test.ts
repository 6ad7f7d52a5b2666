import { createClient } from 'graphql-ws';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createRefold, defineConfig, defineProjection, one, type Projection, type Refold, t } from '../../src/index.ts';
import { account, credit, openAccount } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let refold: Refold | undefined;

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await refold?.stop();
  await database.drop();
});

const moving = (mode: 'async' | 'inline', onError: 'skip' | 'dead-letter', name = 'wallet') =>
  defineProjection({
    name,
    version: 1,
    events: account,
    mode,
    onError,
    history: true,
    table: { accountId: t.text().primaryKey(), credits: t.integer().index() },
    key: (event) => event.streamId,
    evolve: {
      Opened: () => ({ credits: 0 }),
      Credited: (row, { payload: { amount } }) => {
        if (amount === '13') throw new Error('thirteen is bad luck');
        return { credits: (row?.credits ?? 0) + 1 };
      },
    },
  });

interface Answer {
  readonly data: Record<string, { position: string; wallet?: { credits: number } | null; heldRows?: number }> | null;
  readonly errors?: readonly { path: unknown; extensions: Record<string, unknown> }[];
  readonly extensions?: { readonly held: readonly object[] };
}

async function startWith(...projections: readonly Projection[]) {
  const config = defineConfig({
    projections,
    commands: [openAccount, credit],
    database: { url: database.url },
    // The machine of the test may be busy.
    gateway: { port: 0, positionTimeout: 300_000 },
  });
  const started = await createRefold(config, { logger: pino({ level: 'silent' }) });
  refold = started;
  const ask = async (query: string, headers: Record<string, string> = {}): Promise<Answer> => {
    const response = await fetch(`${started.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });
    return (await response.json()) as Answer;
  };
  await until(async () =>
    (await started.status()).every(({ state, inline }) => state === 'active' && (inline === null || inline === 'live')),
  );
  await until(async () => (await ask('{ wallets { totalCount } }')).data);
  for (const id of ['a', 'b'])
    await ask(`mutation { openAccount(input: { accountId: "${id}", owner: "ada" }) { position } }`);
  const pay = (id: string, amount: string, headers?: Record<string, string>) =>
    ask(
      `mutation { credit(input: { accountId: "${id}", amount: "${amount}" }) { position wallet { credits } } }`,
      headers,
    );
  return { ask, pay };
}

const start = (mode: 'async' | 'inline', onError: 'skip' | 'dead-letter') => startWith(moving(mode, onError));

const positionIn = ({ data }: Answer) => data?.credit?.position.split('.')[0] as string;
const refuse = { 'refold-held': 'refuse' };

for (const mode of ['async', 'inline'] as const) {
  test(`a payload and a read that demand an event which is a dead letter say so or are refused: ${mode}`, async () => {
    const { ask, pay } = await start(mode, 'dead-letter');
    const row = (position: string, id = 'a') =>
      `query @after(position: "${position}") { wallet(accountId: "${id}") { credits } }`;
    const whole = await pay('a', '1');
    expect(whole).toMatchObject({ data: { credit: { wallet: { credits: 1 } } } });
    expect(whole.extensions).toBeUndefined();

    const failed = await pay('a', '13');
    const held = { projection: 'wallet', version: 1, key: ['a'], position: positionIn(failed), reason: 'DEAD_LETTER' };
    expect(failed).toMatchObject({ data: { credit: { wallet: { credits: 1 } } }, extensions: { held: [held] } });
    // The next event waits behind it.
    const behind = await pay('a', '2');
    expect(behind).toMatchObject({ data: { credit: { wallet: { credits: 1 } } }, extensions: { held: [held] } });
    expect(await ask(row(positionIn(behind)))).toMatchObject({ extensions: { held: [held] } });
    expect(await ask('{ wallet(accountId: "a") { credits } }', { 'refold-after': positionIn(behind) })).toMatchObject({
      extensions: { held: [held] },
    });
    // What was there before it is whole, and so are other rows.
    expect((await ask(row(positionIn(whole)))).extensions).toBeUndefined();
    expect((await ask(row(positionIn(behind), 'b'))).extensions).toBeUndefined();
    expect((await ask('{ wallet(accountId: "a") { credits } }')).extensions).toBeUndefined();

    // A list, a count and an aggregate may have any row.
    const some = { ...held, key: null };
    for (const fields of ['wallets { nodes { credits } }', 'wallets { totalCount }'])
      expect(await ask(`query @after(position: "${positionIn(behind)}") { ${fields} }`)).toMatchObject({
        extensions: { held: [some] },
      });

    const { position, ...rest } = held;
    const error = { extensions: { code: 'ROW_HELD', ...rest, position } };
    const refused = await pay('a', '3', refuse);
    expect(refused).toMatchObject({
      data: { credit: { position: expect.any(String), wallet: null } },
      errors: [error],
    });
    expect(await ask(row(positionIn(refused)), refuse)).toMatchObject({ data: { wallet: null }, errors: [error] });
    expect(await ask(row(positionIn(refused), 'b'), refuse)).toEqual({ data: { wallet: { credits: 0 } } });
    expect(await ask(row(positionIn(refused)), { 'refold-held': 'yes' })).toMatchObject({
      errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
    });

    expect(await ask('{ _meta { projections { heldRows } } }')).toEqual({
      data: { _meta: { projections: [{ heldRows: 1 }] } },
    });
  });

  test(`a payload and a read that demand a skipped event say so: ${mode}`, async () => {
    const { ask, pay } = await start(mode, 'skip');
    const failed = await pay('a', '13');
    const held = { projection: 'wallet', version: 1, key: ['a'], position: positionIn(failed), reason: 'SKIPPED' };
    expect(failed).toMatchObject({ data: { credit: { wallet: { credits: 0 } } }, extensions: { held: [held] } });
    const read = `query @after(position: "${positionIn(failed)}") { wallet(accountId: "a") { credits } }`;
    expect(await ask(read)).toMatchObject({ extensions: { held: [held] } });
    expect(await ask(read, refuse)).toMatchObject({
      errors: [{ extensions: { code: 'ROW_HELD', reason: 'SKIPPED' } }],
    });
    // Later events are folded without it.
    const next = await pay('a', '1');
    expect(next).toMatchObject({ data: { credit: { wallet: { credits: 1 } } } });
    expect(next.extensions).toBeUndefined();
  });
}

/** The first message of a subscription over a WebSocket whose connection parameters are these. */
async function firstMessage(query: string, connectionParams: Record<string, unknown>): Promise<unknown> {
  const url = `${refold?.url?.replace('http', 'ws')}/graphql`;
  const client = createClient({ url, webSocketImpl: WebSocket, connectionParams, retryAttempts: 0 });
  try {
    for await (const message of client.iterate({ query })) return message;
  } finally {
    await client.dispose();
  }
  return undefined;
}

test('a subscription that demands an event which is a dead letter says so with its first message or is refused', async () => {
  const { pay } = await start('async', 'dead-letter');
  const at = positionIn(await pay('a', '13'));
  const held = { projection: 'wallet', version: 1, key: ['a'], position: at, reason: 'DEAD_LETTER' };
  for (const [query, row] of [
    ['subscription { wallet(accountId: "a") { credits } }', held],
    ['subscription { wallets { snapshot { credits } } }', { ...held, key: null }],
    ['subscription { walletChanges { changes { operation } } }', { ...held, key: null }],
  ] as const) {
    const asked = { 'refold-after': at, 'refold-position': '1' };
    const { held: found, position } = ((await firstMessage(query, asked)) as { extensions: Record<string, unknown> })
      .extensions;
    expect(found).toEqual([row]);
    expect(Number(position)).toBeGreaterThanOrEqual(Number(at));
    expect(await firstMessage(query, { ...asked, ...refuse })).toMatchObject({
      errors: [{ extensions: { code: 'ROW_HELD', reason: 'DEAD_LETTER' } }],
    });
  }
  expect(await firstMessage('subscription { wallet(accountId: "b") { credits } }', { 'refold-after': at })).toEqual({
    data: { wallet: { credits: 0 } },
  });
});

test('rows that are found through a related row which lacks a demanded event say so or are refused', async () => {
  const wallets = defineProjection({
    name: 'wallet',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), ownerId: t.text().index() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, { streamId }) => ({ ownerId: streamId }) },
    relations: { owner: one('owner', { from: 'ownerId' }) },
  });
  const { ask } = await startWith(moving('async', 'dead-letter', 'owner'), wallets);
  const at = positionIn(await ask('mutation { credit(input: { accountId: "a", amount: "13" }) { position } }'));
  const held = { projection: 'owner', version: 1, key: null, position: at, reason: 'DEAD_LETTER' };
  const where = 'where: { owner: { credits: { eq: 0 } } }';
  for (const fields of [
    `wallets(${where}) { nodes { accountId } }`,
    `wallets(${where}) { totalCount }`,
    `walletsAggregate(${where}) { count }`,
  ]) {
    const query = `query @after(position: "${at}") { ${fields} }`;
    expect([fields, await ask(query)]).toMatchObject([fields, { extensions: { held: [held] } }]);
    expect([fields, await ask(query, refuse)]).toMatchObject([
      fields,
      { errors: [{ extensions: { code: 'ROW_HELD' } }] },
    ]);
  }
  expect((await ask(`query @after(position: "${at}") { wallets { nodes { accountId } } }`)).extensions).toBeUndefined();
});
