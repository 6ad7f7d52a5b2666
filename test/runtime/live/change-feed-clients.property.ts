import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createRefold, defineConfig, type Refold, RefoldError } from '../../../src/index.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { effort } from '../../support/effort.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import { account, balanceV1, balanceV2, inPartitions } from '../../support/sample-domain.ts';
import { inStore, type StoreServer } from '../../support/store-setting.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
/** That of the versions of `balance`. */
let db: Database;
/** The number of their partitions. */
let of = 1;
let refold: Refold;
const step = { actor: 'test', reason: 'test' };

interface Balance {
  readonly accountId: string;
  readonly owner: string;
  readonly amount: string;
  readonly movements: number;
}

interface Message {
  readonly position: string;
  readonly cursor: string | null;
  readonly reset: boolean;
  readonly lagged: string | null;
  readonly changes: readonly {
    readonly operation: 'UPSERT' | 'DELETE';
    readonly position: string;
    readonly key: { readonly accountId: string };
    readonly row: Balance | null;
  }[];
}

interface Answer {
  readonly data?: Record<string, { readonly nodes: readonly Balance[] }> | null;
  readonly errors?: unknown;
  readonly extensions?: { readonly position: string; readonly cursors: Record<string, string> };
}

type ReadModel = 'balance' | 'inlineBalance';
type Transport = 'server-sent events' | 'WebSocket';

async function ask(query: string, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as Answer;
}

/** All rows, and the position and the cursor of the response. */
async function askAll(model: ReadModel) {
  const query = `{ ${model}s(first: 100) { nodes { accountId owner amount movements } } }`;
  const { data, extensions, errors } = await ask(query, { 'refold-position': '1' });
  if (!data) throw new Error(JSON.stringify(errors));
  const rows = new Map((data[`${model}s`]?.nodes ?? []).map((row) => [row.accountId, row]));
  const cursor = extensions?.cursors[model === 'balance' ? 'balance' : 'inline_balance'];
  return { rows, position: extensions?.position, cursor };
}

/** The appended events, from which the rows at any position can be computed. */
const appended: { position: bigint; accountId: string; type: string; cents: bigint; owner: string }[] = [];

async function append(accountId: string, type: 'Opened' | 'Credited' | 'Debited' | 'Closed', cents: number) {
  const owner = `owner ${cents}`;
  const amount = (cents / 100).toFixed(2);
  const payload = type === 'Opened' ? { owner } : type === 'Closed' ? {} : { amount };
  const events = [{ type, payload } as never]; // one of the four types
  const { position } = await refold.log.append({ family: account, streamId: accountId, events });
  appended.push({ position, accountId, type, cents: BigInt(cents), owner });
}

function rowsAt(position: bigint): Map<string, Balance> {
  const rows = new Map<string, { owner: string; cents: bigint; movements: number }>();
  for (const { accountId, type, cents, owner } of appended.filter((event) => event.position <= position)) {
    const row = rows.get(accountId);
    if (type === 'Opened') rows.set(accountId, { owner, cents: 0n, movements: 0 });
    else if (type === 'Closed') rows.delete(accountId);
    else if (row) {
      row.cents += type === 'Credited' ? cents : -cents;
      row.movements++;
    }
  }
  return new Map(
    [...rows].map(([accountId, { owner, cents, movements }]) => {
      const amount = (Number(cents) / 100).toFixed(2);
      return [accountId, { accountId, owner, amount, movements }] as const;
    }),
  );
}

/** A connection that may be cut off before it is open. */
class CutWebSocket extends WebSocket {
  constructor(url: string, protocols: string) {
    super(url, protocols);
    this.on('error', () => {});
  }
}

function connect(transport: Transport) {
  const url = `${refold.url}/graphql`;
  if (transport === 'WebSocket') {
    const client = createSocketClient({
      url: url.replace('http', 'ws'),
      webSocketImpl: CutWebSocket,
      retryAttempts: 0,
    });
    // There is no closing handshake, as when a cable is pulled.
    return { iterate: client.iterate, cut: () => client.terminate(), stop: () => client.dispose() };
  }
  const client = createSseClient({ url, retryAttempts: 0 });
  return { iterate: client.iterate, cut: () => client.dispose(), stop: () => client.dispose() };
}

/** A client that keeps a copy of the rows, and records messages that no client should receive. */
function createClient(model: ReadModel, transport: Transport, pause: () => Promise<unknown>) {
  const copy = new Map<string, Balance>();
  /** What a client has that applies no repeats. */
  const withoutRepeats = new Map<string, Balance>();
  const problems: string[] = [];
  const positions = new Map<string, bigint>();
  const query = `subscription ($since: String) { changes: ${model}Changes(since: $since) {
    position cursor reset lagged changes { operation position key { accountId } row { accountId owner amount movements } }
  } }`;
  let cursor: string | null = null;
  let wire: ReturnType<typeof connect> | undefined;
  let listening = Promise.resolve();

  function apply(message: Message, last: bigint): void {
    if (BigInt(message.position) < last) problems.push(`position ${message.position} came after ${last}`);
    if (message.lagged && !message.reset) problems.push('lagged, but was not reset');
    if (message.reset) {
      copy.clear();
      withoutRepeats.clear();
      positions.clear();
    }
    for (const { operation, key, row, position } of message.changes) {
      const before = positions.get(key.accountId) ?? -1n;
      if (BigInt(position) < before) problems.push(`${key.accountId} of ${position} came after ${before}`);
      positions.set(key.accountId, BigInt(position));
      if ((row === null) !== (operation === 'DELETE')) problems.push(`${operation} of ${JSON.stringify(row)}`);
      for (const rows of BigInt(position) > before ? [copy, withoutRepeats] : [copy]) {
        if (row) rows.set(key.accountId, row);
        else rows.delete(key.accountId);
      }
    }
    cursor = message.cursor;
  }

  async function listen(connection: ReturnType<typeof connect>): Promise<void> {
    let last = -1n;
    try {
      for await (const result of connection.iterate({ query, variables: { since: cursor } })) {
        const message = result.data?.changes as Message | undefined;
        if (connection !== wire) return; // what arrives after the cut was never seen
        if (!message) throw new Error(JSON.stringify(result));
        apply(message, last);
        last = BigInt(message.position);
        await pause();
      }
      if (connection === wire) problems.push('it ended');
    } catch (error) {
      if (connection === wire)
        problems.push(`it failed: ${error instanceof Error ? error.message : JSON.stringify(error)}`);
    }
  }

  return {
    model,
    copy,
    withoutRepeats,
    problems,
    async resume() {
      if (wire) return;
      await listening;
      wire = connect(transport);
      listening = listen(wire);
    },
    cut() {
      const connection = wire;
      wire = undefined;
      connection?.cut();
    },
    async stop() {
      const connection = wire;
      wire = undefined;
      await connection?.stop();
      await listening;
    },
  };
}

const oneOf = <T extends string>(...values: readonly T[]) => fc.constantFrom(...values);
const steps = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      what: fc.constant('append' as const),
      accountId: oneOf('a', 'b', 'c', 'd', 'e'),
      type: oneOf('Opened', 'Opened', 'Credited', 'Credited', 'Debited', 'Closed'),
      cents: fc.nat({ max: 500 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('cut' as const), client: fc.nat({ max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('resume' as const), client: fc.nat({ max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ what: oneOf('rebuild', 'switch', 'prune', 'ask', 'ask') }) },
);
const plays = fc.record({
  steps: fc.array(steps, { minLength: 15, maxLength: 40 }),
  pauses: fc.array(fc.constantFrom(0, 0, 2, 20), { minLength: 4, maxLength: 4 }),
});

async function operate(what: 'rebuild' | 'switch' | 'prune' | 'ask'): Promise<void> {
  try {
    switch (what) {
      case 'rebuild':
        return await requestRebuild(db, inPartitions(balanceV2, of), 'read_models', step);
      case 'switch': {
        const active = (await refold.status()).some(
          ({ name, version, state }) => name === 'balance' && version === 2 && state === 'active',
        );
        if (active) await refold.lifecycle.rollback('balance', step);
        else await refold.lifecycle.activate('balance', 2, step);
        return;
      }
      case 'prune':
        await db.query({ text: `delete from refold.changes where name = 'balance'` });
        return;
      case 'ask': {
        for (const model of ['balance', 'inlineBalance'] as const) {
          const { rows, position } = await askAll(model);
          // Null if the rows moved to another table at that moment.
          if (position !== undefined) expectRowsFrom(model === 'balance' ? of : 1, rows, position);
        }
        return;
      }
    }
  } catch (error) {
    // A rebuild is already in progress.
    if (!(error instanceof RefoldError && error.code === 'INVALID_TRANSITION')) throw error;
  }
}

/** Expects the rows at a position. Those of each of several partitions may be of a later one. */
function expectRowsFrom(partitions: number, rows: ReadonlyMap<string, Balance>, position: string): void {
  const first = BigInt(position.split('.')[0] ?? 0);
  if (partitions === 1) {
    expect(rows).toEqual(rowsAt(first));
    return;
  }
  const later = [first, ...appended.flatMap((event) => (event.position > first ? [event.position] : []))].map(rowsAt);
  for (const id of new Set([...rows.keys(), ...appended.map(({ accountId }) => accountId)]))
    expect(later.map((at) => at.get(id))).toContainEqual(rows.get(id));
}

/** A run may leave rebuilds and activations in progress, and rows that move make a feed start over. */
async function untilRowsStay(): Promise<void> {
  await until(async () => (await readRebuilds(db)).length === 0);
  const serving = (await readRegistry(db))
    .filter(({ name, state }) => name === 'balance' && state === 'active')
    .toSorted((a, b) => b.version - a.version)[0];
  await until(async () => (await askAll('balance')).cursor?.endsWith(`@${serving?.version}.${serving?.generation}`));
}

/**
 * What clients of change feeds see, whose read model is in the database of the log, or in a read store of any kind. Called at the top of a file.
 *
 * @param startStore starts the store of `balance`. @default the database of the log
 * @param partitions those of `balance`
 */
export function changeFeedClients(startStore?: () => Promise<StoreServer>, partitions = 1): void {
  let store: StoreServer | undefined;
  of = partitions;

  beforeAll(async () => {
    // A worker loads this module once for all of its test files.
    appended.length = 0;
    database = await createTestDatabase();
    store = await startStore?.();
    const { url = database.url, placement } = store ?? {};
    const elsewhere = { log: undefined, storesOf: () => [], others: () => [], placement };
    db = createDatabase({ url, ...(placement ? { elsewhere } : {}) });
    const config = defineConfig({
      projections: [
        ...[balanceV1, balanceV2].map((one) => (store ? inStore(inPartitions(one, partitions)) : one)),
        inlineBalance,
      ],
      database: { url: database.url },
      ...(store ? { readStores: { analytics: { url, ...(placement ? { placement } : {}) } } } : {}),
      gateway: { port: 0 },
    });
    refold = await createRefold(config, { logger: pino({ level: 'silent' }) });
    await until(async () => (await refold.status()).every(({ state }) => state === 'active'));
    for (const model of ['balance', 'inlineBalance'] as const) await until(() => askAll(model).catch(() => false));
  });

  afterAll(async () => {
    await refold.stop();
    await db.close();
    await database.drop();
    await store?.stop();
  });

  test('clients that are cut off at any time and reconnect end with the rows of the table, over both transports, through rebuilds and activations', async () => {
    await fc.assert(
      fc.asyncProperty(plays, async ({ steps: taken, pauses }) => {
        const trips = (count: number) => async () => {
          for (let trip = 0; trip < count; trip++) await db.query({ text: 'select' });
        };
        const models = ['balance', 'balance', 'inlineBalance', 'inlineBalance'] as const;
        const clients = models.map((model, index) =>
          createClient(model, index % 2 === 0 ? 'server-sent events' : 'WebSocket', trips(pauses[index] ?? 0)),
        );
        for (const client of clients) await client.resume();
        for (const one of taken) {
          switch (one.what) {
            case 'append':
              await append(one.accountId, one.type, one.cents);
              break;
            case 'cut':
              clients[one.client]?.cut();
              break;
            case 'resume':
              await clients[one.client]?.resume();
              break;
            default:
              await operate(one.what);
          }
        }
        for (const client of clients) await client.resume();
        const expected = rowsAt(appended.at(-1)?.position ?? 0n);
        await until(() =>
          clients.every(({ copy, problems }) => problems.length > 0 || isDeepStrictEqual(copy, expected)),
        ).finally(() => Promise.all(clients.map((client) => client.stop())));
        expect(clients.flatMap(({ problems }) => problems)).toEqual([]);
        for (const { withoutRepeats } of clients) expect(withoutRepeats).toEqual(expected);
      }),
      { numRuns: effort(12, 4) },
    );
  });

  test.each([
    ['balance', 'WebSocket'],
    ['inlineBalance', 'server-sent events'],
  ] as const)('a change feed of %s continues from the cursor of a response', async (model, transport) => {
    await untilRowsStay();
    await append('z', 'Opened', 1);
    await append('y', 'Opened', 2);
    // Partitions are at different positions: the one with `y` may be further.
    await until(async () => {
      const { rows } = await askAll(model);
      return rows.has('y') && rows.has('z');
    });
    const { rows, cursor } = await askAll(model);
    await append('z', 'Closed', 0);
    // Among rows folded together, the upserted ones are sent first.
    await until(async () => !(await askAll(model)).rows.has('z'));
    await append('x', 'Opened', 3);
    const last = appended.at(-1)?.position ?? 0n;
    await until(async () => BigInt((await askAll(model)).position?.split('.')[0] ?? 0) >= last);
    const client = connect(transport);
    const updates = client.iterate({
      query: `subscription ($since: String) { changes: ${model}Changes(since: $since) { reset changes { operation key { accountId } } } }`,
      variables: { since: cursor },
    });
    expect((await updates.next()).value).toEqual({
      data: {
        changes: {
          reset: false,
          changes: [
            { operation: 'DELETE', key: { accountId: 'z' } },
            { operation: 'UPSERT', key: { accountId: 'x' } },
          ],
        },
      },
    });
    await client.stop();
    expect(rows.has('z')).toBe(true);
  });
}
