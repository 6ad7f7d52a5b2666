import { createClient } from 'graphql-ws';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { effort } from '../support/effort.ts';
import { inlineBalance } from '../support/inline-domain.ts';
import { balanceV1, credit, openAccount } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
/** Commands go to the first one, subscriptions to the second. */
let gateways: readonly Refold[] = [];
const accounts = ['a', 'b', 'c', 'd'];

beforeAll(async () => {
  database = await createTestDatabase();
  const config = defineConfig({
    projections: [balanceV1, inlineBalance],
    commands: [openAccount, credit],
    database: { url: database.url },
    gateway: { port: 0, positionTimeout: 300_000 },
  });
  const start = () => createRefold(config, { logger: pino({ level: 'silent' }) });
  gateways = [await start(), await start()];
  for (const gateway of gateways)
    await until(async () =>
      (await gateway.status()).every(({ state, inline }) => state === 'active' && inline !== 'building'),
    );
  for (const id of accounts)
    await until(async () => (await send(`openAccount(input: { accountId: "${id}", owner: "ada" }) { position }`)).data);
});
afterAll(async () => {
  for (const one of gateways) await one.stop();
  await database.drop();
});

interface Payload {
  readonly position: string;
  readonly row: { readonly movements: number };
}

async function send(mutation: string): Promise<{ data: { credit: Payload } | null }> {
  const response = await fetch(`${gateways[0]?.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: `mutation { ${mutation} }` }),
  });
  return (await response.json()) as { data: { credit: Payload } | null };
}

interface Message {
  readonly data: Record<string, { snapshot?: Row[] | null; entered?: Row[]; changed?: Row[] } & Row>;
  readonly extensions: { readonly position: string };
}
interface Row {
  readonly accountId: string;
  readonly movements: number;
}

test.each([
  'balance',
  'inlineBalance',
])('a client that ignores messages from before the position of its payload never shows an older row: %s', async (model) => {
  /** What the client shows, and from which position it is. */
  const shown = new Map<string, { movements: number; position: number }>();
  const problems: string[] = [];
  const take = ({ accountId, movements }: Row, position: number) => {
    const before = shown.get(accountId);
    if (before && position < before.position) return;
    if (before && movements < before.movements)
      problems.push(`${accountId} went from ${before.movements} at ${before.position} to ${movements} at ${position}`);
    shown.set(accountId, { movements, position });
  };
  const client = createClient({
    url: `${gateways[1]?.url?.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { 'refold-position': '1' },
    retryAttempts: 0,
  });
  const fields = '{ accountId movements }';
  const subscribe = (query: string) =>
    client.subscribe(
      { query },
      {
        next(result) {
          const { data, extensions } = result as unknown as Message;
          const { snapshot, entered = [], changed = [], ...row } = data.live as Message['data'][string];
          const rows = 'accountId' in row ? [row as Row] : [...(snapshot ?? []), ...entered, ...changed];
          for (const one of rows) take(one, Number(extensions.position));
        },
        error: (error) => problems.push(JSON.stringify(error)),
        complete() {},
      },
    );
  subscribe(`subscription { live: ${model}s { snapshot ${fields} entered ${fields} changed ${fields} } }`);
  subscribe(`subscription { live: ${model}(accountId: "a") ${fields} }`);
  const counts = await Promise.all(
    accounts.map(async (accountId) => {
      let movements = 0;
      for (let turn = 0; turn < effort(100, 25); turn++) {
        const { data } = await send(
          `credit(input: { accountId: "${accountId}", amount: "1" }) { position row: ${model} ${fields} }`,
        );
        if (!data) throw new Error('refused');
        movements = data.credit.row.movements;
        take({ accountId, movements }, Number(data.credit.position.split('.')[0]));
      }
      return [accountId, movements] as const;
    }),
  );
  await until(() => counts.every(([id, movements]) => shown.get(id)?.movements === movements));
  await client.dispose();
  expect(problems).toEqual([]);
});
