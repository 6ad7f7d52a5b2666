import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRefold, defineConfig, defineProjection, type Projection, type Refold, t } from '../../src/index.ts';
import { checkStoredDeclarations } from '../../src/runtime/activation/check-declarations.ts';
import { readStatus } from '../../src/runtime/monitoring/status.ts';
import { requestRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readInlineVersions } from '../../src/store/registry/inline-versions.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { inlineBalance } from '../support/inline-domain.ts';
import { account, balanceV1, balanceV2, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let db: Database;
let refold: Refold | undefined;
let said: string[];
const silent = pino({ level: 'silent' });
const readSchema = 'read_models';
const byAnn = { actor: 'ann', reason: 'test' };

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  said = [];
});
afterEach(async () => {
  await stop();
  await db.close();
  await database.drop();
});

function configOf(...projections: readonly Projection[]) {
  return defineConfig({ projections, commands: [openAccount], database: { url: database.url }, gateway: { port: 0 } });
}

async function start(...projections: readonly Projection[]): Promise<Refold> {
  refold = await createRefold(configOf(...projections), {
    logger: pino({ level: 'warn' }, { write: (line: string) => void said.push(JSON.parse(line).msg) }),
  });
  return refold;
}

async function stop(): Promise<void> {
  await refold?.stop();
  refold = undefined;
}

async function open(to: Refold, ...ids: readonly string[]): Promise<void> {
  for (const streamId of ids) {
    await to.log.append({ family: account, streamId, events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  }
  await caughtUp(to, 'openings', 1);
}

async function status(to: Refold, name: string, version: number) {
  return (await readStatus(db, to.log)).find((one) => one.name === name && one.version === version);
}

async function generation(name: string) {
  return (await readRegistry(db)).find((one) => one.name === name)?.generation;
}

async function caughtUp(to: Refold, name: string, version: number): Promise<void> {
  const head = await to.log.horizon();
  await until(async () => ((await status(to, name, version))?.position ?? 0n) >= head);
}

/** A stopped version is claimed again after a moment, and then has no error until it is stopped again. */
function untilAltered(to: Refold, name: string) {
  return until(async () => {
    const found = await status(to, name, 1);
    return found?.error?.code === 'TABLE_ALTERED' && found;
  });
}

interface Answer {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: { readonly code: string } }[];
}

async function ask(to: Refold, query: string): Promise<Answer> {
  const response = await fetch(`${to.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as Answer;
}

const balances = '{ balances(first: 10) { nodes { accountId owner movements } } }';
const openings = '{ openings(owner: "Ada") { opened } }';

test('a table that is dropped in use causes a typed error that names it, and a rebuild restores it', async () => {
  const app = await start(balanceV1, openingsV1);
  await open(app, 'a');
  await caughtUp(app, 'balance', 1);
  await db.query({ text: 'drop table read_models.balance_v1 cascade' });
  // Before any process has found the reason.
  expect((await ask(app, balances)).errors).toMatchObject([{ extensions: { code: 'PROJECTION_NOT_READY' } }]);
  await open(app, 'b');
  // The processor may stop at a failed statement first, and again when the reason is known.
  const found = await untilAltered(app, 'balance');
  const problem = "balance@1: its table read_models.balance_v1 is missing. 'refold rebuild balance@1' rebuilds it.";
  expect(found).toMatchObject({ state: 'active', error: { message: problem } });
  await until(() => said.some((line) => line.includes(problem))); // it is logged after it is recorded
  await until(async () =>
    (await ask(app, balances)).errors?.[0]?.message.startsWith("The table of balance@1 can't be read."),
  );
  expect(await ask(app, openings)).toEqual({ data: { openings: { opened: 2 } } });
  expect((await fetch(`${app.url}/health/ready`)).status).toBe(200);
  const altered = 'refold_table_altered{projection="balance",version="1"} 1';
  await until(async () => (await (await fetch(`${app.url}/metrics`)).text()).includes(altered));
  expect(await checkStoredDeclarations(db, configOf(balanceV1, openingsV1))).toContainEqual({
    kind: 'problem',
    message: problem,
  });

  await requestRebuild(db, balanceV1, readSchema, byAnn);
  await until(async () => !(await ask(app, balances)).errors);
  await until(async () => (await status(app, 'balance', 1))?.processor === 'running');
  expect(await status(app, 'balance', 1)).toMatchObject({ state: 'active', error: null });
  await open(app, 'c');
  await caughtUp(app, 'balance', 1);
  const { data } = await ask(app, balances);
  expect(data).toMatchObject({ balances: { nodes: [{ accountId: 'a' }, { accountId: 'b' }, { accountId: 'c' }] } });
});

test('altered columns are named when their version is claimed; the version continues when they are restored', async () => {
  const app = await start(balanceV1, openingsV1);
  await open(app, 'a');
  await caughtUp(app, 'balance', 1);
  await stop();
  await db.query({ text: 'drop view read_models.balance' });
  await db.query({ text: 'alter table read_models.balance_v1 alter column movements type text using movements::text' });
  await db.query({ text: 'alter table read_models.balance_v1 alter column owner drop not null' });
  const again = await start(balanceV1, openingsV1);
  expect((await untilAltered(again, 'balance')).error?.message).toBe(
    "balance@1: its table read_models.balance_v1 was altered: column 'owner' may be null, column 'movements' is text instead of integer. 'refold rebuild balance@1' rebuilds it.",
  );
  await until(async () => (await ask(again, balances)).errors?.[0]?.extensions.code === 'PROJECTION_NOT_READY');
  await stop();
  await db.query({
    text: 'alter table read_models.balance_v1 alter column movements type integer using movements::integer',
  });
  await db.query({ text: 'alter table read_models.balance_v1 alter column owner set not null' });
  const mended = await start(balanceV1, openingsV1);
  await until(async () => (await status(mended, 'balance', 1))?.processor === 'running');
  // The answering process notices it a moment later.
  expect(await until(async () => (await ask(mended, balances)).data?.balances)).toEqual({
    nodes: [{ accountId: 'a', owner: 'Ada', movements: 0 }],
  });
});

test.for([
  ['dropped', 'drop table TABLE cascade'],
  ['lacks a column', 'alter table TABLE rename column movements to moves'],
  ['lacks its key', 'alter table TABLE drop constraint inline_balance_v1_pkey'],
])('appends go on at once if the table of a live inline version %s, in a gateway that maintains nothing', async ([
  _,
  text,
]) => {
  const config = configOf(inlineBalance, balanceV1, openingsV1);
  const worker = await createRefold(config, { role: 'worker', name: 'worker', logger: silent });
  try {
    refold = await createRefold(config, { role: 'gateway', name: 'gateway', logger: silent });
    await until(async () => (await readInlineVersions(db)).every(({ status: inline }) => inline === 'live'));
    await open(refold, 'a', 'b');
    await db.query({ text: String(text).replace('TABLE', 'read_models.inline_balance_v1') });
    // None is refused, and none waits for a periodic check.
    for (const id of ['c', 'd', 'e']) await open(refold, id);
    await untilAltered(refold, 'inline_balance');
    await requestRebuild(db, inlineBalance, readSchema, byAnn);
    for (let more = 0; ; more++) {
      await open(refold, `more-${more}`);
      const [inline] = await readInlineVersions(db);
      if (inline?.status === 'live' && (await generation('inline_balance')) === 2) break;
    }
    // The gateway knew the former table.
    await open(refold, 'last');
    expect(await db.query({ text: 'select count(*)::int from read_models.inline_balance' })).toEqual(
      await db.query({ text: 'select count(*)::int from read_models.balance' }),
    );
  } finally {
    await stop();
    await worker.stop();
  }
});

test('a column with a narrower type is named at the first value that it refuses, which is no failure of the event', async () => {
  const letters = { ...balanceV1, onError: { ...balanceV1.onError, policy: 'dead-letter' as const } };
  const { database: given, ...config } = configOf(letters, inlineBalance, openingsV1);
  // Prepared statements fail before they are executed, because the type of their result has changed.
  const app = await createRefold({ ...config, database: { ...given, prepare: false } }, { logger: silent });
  refold = app;
  await until(async () => (await readInlineVersions(db)).every(({ status: inline }) => inline === 'live'));
  await open(app, 'a');
  await caughtUp(app, 'balance', 1);
  for (const table of ['balance_v1', 'inline_balance_v1'])
    await db.query({
      text: `drop view read_models.${table.replace('_v1', '')}; alter table read_models.${table} alter column owner type varchar(3)`,
    });
  const grace = { type: 'Opened', payload: { owner: 'Grace' } } as const;
  await app.log.append({ family: account, streamId: 'b', events: [grace] });
  for (const name of ['balance', 'inline_balance'])
    expect((await untilAltered(app, name)).error?.message).toContain(
      "column 'owner' is character varying(3) instead of text",
    );
  await app.log.append({ family: account, streamId: 'c', events: [grace] });
  expect(await db.query({ text: 'select count(*)::int from refold.dead_letters' })).toEqual([{ count: 0 }]);
});

test('a gateway that a rebuild of an altered table overtook appends to the new table, without an error', async () => {
  const config = configOf(inlineBalance, openingsV1);
  const worker = await createRefold(config, { role: 'worker', name: 'worker', logger: silent });
  try {
    refold = await createRefold(config, { role: 'gateway', name: 'gateway', logger: silent });
    await until(async () => (await readInlineVersions(db)).every(({ status: inline }) => inline === 'live'));
    await open(refold, 'a');
    await requestRebuild(db, inlineBalance, readSchema, byAnn);
    await db.query({ text: 'alter table read_models.inline_balance_v1 drop column owner cascade' });
    await until(async () => (await generation('inline_balance')) === 2);
    await until(async () => (await readInlineVersions(db)).every(({ status: inline }) => inline === 'live'));
    await open(refold, 'b');
    expect(await db.query({ text: 'select count(*)::int from read_models.inline_balance' })).toEqual([{ count: 2 }]);
  } finally {
    await stop();
    await worker.stop();
  }
});

test('a table that is UNLOGGED is named before a crash empties it', async () => {
  const app = await start(balanceV1, openingsV1);
  await open(app, 'a');
  await caughtUp(app, 'balance', 1);
  await db.query({ text: 'alter table read_models.balance_v1 set unlogged' });
  await stop();
  const again = await start(balanceV1, openingsV1);
  expect((await untilAltered(again, 'balance')).error?.message).toContain(
    'was altered: it is UNLOGGED, so a crash of the server empties it.',
  );
});

test('a column that was added and must have a value is named, and no event becomes a dead letter because of it', async () => {
  const owners = defineProjection({
    name: 'owner',
    version: 1,
    events: account,
    onError: 'dead-letter',
    table: { accountId: t.text().primaryKey(), owner: t.text() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, event) => ({ owner: event.payload.owner }) },
  });
  const app = await start(openingsV1, owners);
  await open(app, 'a');
  await caughtUp(app, 'owner', 1);
  await db.query({
    text: `alter table read_models.owner_v1 add harmless text default '', add note text not null default ''`,
  });
  await db.query({ text: 'alter table read_models.owner_v1 alter column note drop default' });
  await open(app, 'b');
  expect(await untilAltered(app, 'owner')).toMatchObject({
    deadLetters: 0,
    error: {
      message:
        "owner@1: its table read_models.owner_v1 was altered: column 'note' was added, is not null and has no default. 'refold rebuild owner@1' rebuilds it.",
    },
  });
  await requestRebuild(db, owners, readSchema, byAnn);
  await until(async () => (await status(app, 'owner', 1))?.processor === 'running');
  await caughtUp(app, 'owner', 1);
  // The answering process may read the table from before the rebuild for another moment.
  const owned = async () => (await ask(app, '{ owners(first: 10) { nodes { accountId } } }')).data;
  await until(async () =>
    isDeepStrictEqual(await owned(), { owners: { nodes: [{ accountId: 'a' }, { accountId: 'b' }] } }),
  );
});

test('a version that is being built and whose table is missing fails, and a rebuild makes it ready', async () => {
  const app = await start(balanceV1, openingsV1, {
    ...balanceV2,
    activation: { ...balanceV2.activation, by: 'manual' },
  });
  await open(app, 'a');
  await until(async () => (await status(app, 'balance', 2))?.state === 'ready');
  await db.query({ text: 'drop table read_models.balance_v2' });
  await open(app, 'b');
  await until(async () => (await status(app, 'balance', 2))?.state === 'failed');
  expect((await ask(app, balances)).errors).toBeUndefined();
  await requestRebuild(db, balanceV2, readSchema, byAnn);
  await until(async () => (await status(app, 'balance', 2))?.state === 'ready');
  await caughtUp(app, 'balance', 2);
});

test('appends continue without an inline version whose table is missing; it joins them again after a rebuild', async () => {
  const inline = defineProjection({
    name: 'owner',
    version: 1,
    events: account,
    mode: 'inline',
    table: { accountId: t.text().primaryKey(), owner: t.text() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, event) => ({ owner: event.payload.owner }) },
  });
  const app = await start(openingsV1, inline);
  await until(async () => (await status(app, 'owner', 1))?.inline === 'live');
  await db.query({ text: 'drop table read_models.owner_v1 cascade' });
  const openAnother = async () => {
    const id = crypto.randomUUID();
    return ask(app, `mutation { openAccount(input: { accountId: "${id}", owner: "Ada" }) { position } }`);
  };
  // An append may find it before the processor has found it; then it is refused.
  await until(async () => {
    const { errors } = await openAnother();
    if (errors) expect(errors).toMatchObject([{ extensions: { code: 'PROJECTION_NOT_READY' } }]);
    return !errors;
  });
  await until(async () => (await status(app, 'owner', 1))?.processor === 'stopped');
  await until(async () => (await status(app, 'owner', 1))?.inline === 'building'); // once no append writes it any more
  expect((await status(app, 'owner', 1))?.state).toBe('active');
  await requestRebuild(db, inline, readSchema, byAnn);
  await until(async () => (await status(app, 'owner', 1))?.inline === 'live');
  expect((await openAnother()).errors).toBeUndefined();
  const { data } = await ask(app, '{ owners(first: 100) { nodes { owner } } }');
  const [log] = await db.query<{ opened: number }>({ text: 'select count(*)::integer as opened from refold.events' });
  expect(data).toEqual({ owners: { nodes: Array.from({ length: log?.opened ?? 0 }, () => ({ owner: 'Ada' })) } });
});

test('a dropped index is reported, and nothing stops because of it', async () => {
  const app = await start(balanceV1, openingsV1);
  await open(app, 'a');
  await caughtUp(app, 'balance', 1);
  expect((await status(app, 'balance', 1))?.missingIndexes).toEqual([]);
  await db.query({ text: 'drop index read_models.balance_v1_amount' });
  expect(await status(app, 'balance', 1)).toMatchObject({ processor: 'running', missingIndexes: ['amount'] });
  expect(await checkStoredDeclarations(db, configOf(balanceV1, openingsV1))).toContainEqual({
    kind: 'note',
    message:
      "balance@1: its table lacks the index of 'amount', so reads that need it scan the table. 'refold rebuild balance@1' rebuilds it.",
  });
  await requestRebuild(db, balanceV1, readSchema, byAnn);
  await until(async () => (await status(app, 'balance', 1))?.missingIndexes.length === 0);
});
