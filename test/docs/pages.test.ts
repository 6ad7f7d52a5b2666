import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Kind, type OperationDefinitionNode, parse } from 'graphql';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import app from '../../examples/shopping-cart/app.ts';
import { customer, shoppingCart } from '../../examples/shopping-cart/events.ts';
import { beginning, type Config, createRefold, defineConfig, defineState, type Refold } from '../../src/index.ts';
import { type ImportProgress, importEvents } from '../../src/runtime/commands/import-events.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { givenReactor, givenStream } from '../../src/testing.ts';
import { untilActive, untilCaughtUp } from '../support/patient.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { asShown } from './as-shown.ts';
import { booking, bookingFlowV1, bookingFlowV2, charge, confirmBooking, holdRoom } from './booking-versions.ts';
import { extendedShop } from './extended-shop.ts';
import { invoice, invoices, tokenOf } from './invoices.ts';
import { order, person } from './payload-evolution.ts';
import { account, paymentsImport } from './payments-import.ts';
import { payment, releaseRoom, remindGuest, reservation, reservationExpiry } from './reservation-expiry.ts';

/**
 * An operation of a page, and the headers and response that the page shows below it. Comments at the operation's beginning
 * such as `# refold-pin: cart_summary@1` are headers of the request; `<token of ada>` in them is one.
 */
interface Example {
  readonly source: string;
  readonly headers: string | undefined;
  readonly answer: string | undefined;
}

const folder = join(import.meta.dirname, '../../docs');
const at = '2026-01-31T12:00:00.000Z';

/** Pictures belong to a page. */
const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));

/** Their own tests execute them, with the releases of their stories. */
const tutorials = ['tutorial.md', 'retail.md'];

const pages = names
  .filter((name) => !tutorials.includes(name))
  .map((name) => [name, examplesIn(readFileSync(join(folder, name), 'utf8'))] as const)
  .filter(([, examples]) => examples.length > 0)
  // Examples that write come after those that read.
  .sort(([a, first], [b, second]) => Number(writes(first)) - Number(writes(second)) || (a < b ? -1 : 1));

/** Parts of schemas, and sketches with omissions, are not operations. */
function examplesIn(page: string): Example[] {
  return [...page.matchAll(/```graphql\n(.*?)```(?:\n+```http\n(.*?)```)?(?:\n+```json\n(.*?)```)?/gs)]
    .map(([, source = '', headers, answer]) => ({ source, headers, answer }))
    .filter(({ source }) => !source.includes('…') && operationIn(source) !== undefined);
}

function operationIn(source: string): OperationDefinitionNode | undefined {
  return parse(source).definitions.find((definition) => definition.kind === Kind.OPERATION_DEFINITION);
}

function writes(examples: readonly Example[]): boolean {
  return examples.some(({ source }) => operationIn(source)?.operation === 'mutation');
}

let database: TestDatabase;
let invoiceDatabase: TestDatabase;
let refold: Refold;
/** The applications of pages that do not use the sample unchanged. */
const others = new Map<string, Refold>();

beforeAll(async () => {
  database = await createTestDatabase();
  const { projections, commands } = app;
  refold = await start(
    defineConfig({
      development: false,
      projections: projections.map((one) =>
        one.id === 'cart_summary@1' ? { ...one, sunset: new Date('2027-01-31') } : one,
      ),
      commands,
      gateway: { port: 0, positionTimeout: 300_000 },
    }),
    database,
  );
  for (const [streamId, name] of Object.entries({ ada: 'Ada', bob: 'Bob' })) {
    const payload = { profile: { name, email: `${streamId}@example.com` }, registeredAt: at };
    await refold.log.append({ family: customer, streamId, events: [{ type: 'CustomerRegistered', payload }] });
  }
  for (const [streamId, customerId, quantity] of [
    ['cart-1', 'ada', 3],
    ['cart-2', 'ada', 1],
    ['cart-3', 'bob', 2],
  ] as const) {
    const productItem = { productId: 'mug', name: 'Mug', quantity, unitPrice: '7.50' };
    await refold.log.append({
      family: shoppingCart,
      streamId,
      events: [
        { type: 'ShoppingCartOpened', payload: { customerId, openedAt: at } },
        { type: 'ProductItemAdded', payload: { productItem } },
      ],
    });
  }
  const confirmed = { type: 'ShoppingCartConfirmed', payload: { confirmedAt: at } } as const;
  await refold.log.append({ family: shoppingCart, streamId: 'cart-2', events: [confirmed] });
  await untilActive(refold, 'cart_summary@2');
  await untilCaughtUp(refold);
  await untilServed(refold, '{ cartSummaries { nodes { status } } customerProfiles { nodes { name } } }');
  await startOthers();
});

async function startOthers(): Promise<void> {
  others.set('extending.md', await start(extendedShop, database, 'gateway'));
  // It shows the error for a position that is not reached in time.
  const { projections } = app;
  const impatient = defineConfig({ development: false, projections, gateway: { port: 0 } });
  others.set('freshness.md', await start(impatient, database, 'gateway'));
  invoiceDatabase = await createTestDatabase();
  const billing = await start(invoices, invoiceDatabase);
  others.set('security.md', billing);
  for (const [streamId, customerId, margin] of [
    ['invoice-1', 'ada', '4.00'],
    ['invoice-2', 'bob', '3.00'],
  ] as const) {
    const payload = { customerId, total: '20.00', margin };
    await billing.log.append({ family: invoice, streamId, events: [{ type: 'InvoiceSent', payload }] });
  }
  await untilActive(billing, 'invoice@1');
  await untilCaughtUp(billing);
  await untilServed(billing, '{ invoices { totalCount } }');
}

/** A gateway notices an activation a moment later. */
function untilServed(server: Refold, query: string): Promise<unknown> {
  return until(async () => (await server.graphql(query)).errors === undefined);
}

function start(config: Config, { url }: TestDatabase, role: 'all' | 'gateway' = 'all'): Promise<Refold> {
  return createRefold(
    { ...config, database: { ...config.database, url } },
    { logger: pino({ level: 'silent' }), role },
  );
}

afterAll(async () => {
  for (const other of others.values()) await other.stop();
  await refold.stop();
  await database.drop();
  await invoiceDatabase.drop();
});

test('there are pages with examples', () => {
  expect(pages.map(([name]) => name)).toEqual(
    expect.arrayContaining([
      'clients.md',
      'commands.md',
      'extending.md',
      'freshness.md',
      'pins.md',
      'queries.md',
      'security.md',
      'subscriptions.md',
      'time-travel.md',
    ]),
  );
});

test('index.md lists every page once, and no link is broken', () => {
  const texts = names.map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const);
  const index = readFileSync(join(folder, 'index.md'), 'utf8');
  const listed = [...index.matchAll(/^\| \[.*?\]\((.*?)\)/gm)].map(([, name]) => name);
  const shows = ['index.md', 'source/[path].md']; // the list, and the files of the repository
  expect(listed.toSorted()).toEqual(names.filter((name) => !shows.includes(name)).toSorted());
  const lost = texts.flatMap(([name, text]) =>
    [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)]
      .map(([, path = '']) => path)
      .filter((path) => !existsSync(join(folder, dirname(name), path)))
      .map((path) => `${name}: ${path}`),
  );
  expect(lost).toEqual([]);
});

test.each([
  ['security.md', 'access: {', 'invoices.ts'],
  ['extending.md', 'extendSchema(', 'extended-shop.ts'],
  ['upcasting.md', "was: ['visitor']", 'renamed-guests.ts'],
  ['extending.md', "'smallCarts'", 'extended-shop.ts'],
  ['extending.md', "'checkOut'", 'extended-shop.ts'],
  ['extending.md', "'serverTime'", 'extended-shop.ts'],
  ['import.md', 'defineImport(', 'payments-import.ts'],
  ['import.md', 'function parseExactly', 'payments-import.ts'],
  ['upcasting.md', 'OrderPlacedV1', 'payload-evolution.ts'],
  ['upcasting.md', 'PersonV1', 'payload-evolution.ts'],
  ['modelling.md', 'defineEvents(', '../../examples/shopping-cart/events.ts'],
  ['modelling.md', 'defineCommand(', '../../examples/shopping-cart/shopping-cart.ts'],
  ['reactors.md', 'waitsFor: {', 'reservation-expiry.ts'],
  ['reactors.md', 'version: 2', 'booking-versions.ts'],
])('the code of %s with `%s` equals the code that runs', (page, part, file) => {
  const lines = (text: string) => text.split('\n').map((line) => line.trim());
  const blocks = [...readFileSync(join(folder, page), 'utf8').matchAll(/```ts\n(.*?)```/gs)].map(
    ([, code = '']) => code,
  );
  const shown = lines(blocks.find((code) => code.includes(part)) ?? expect.fail(`no code with ${part}`));
  const runs = new Set(lines(readFileSync(join(import.meta.dirname, file), 'utf8')));
  // The page may omit lines, and begin anywhere.
  const own = /^(…,|projections: .*|(export default |const \w+ = )?define\w+\(\{|)$/;
  expect(shown.filter((line) => !own.test(line) && !runs.has(line))).toEqual([]);
});

test('the statements of sql.md run on the database of the running example', async () => {
  const page = readFileSync(join(folder, 'sql.md'), 'utf8');
  const statements = [...page.matchAll(/```sql\n(.*?)```/gs)].map(([, statement = '']) => statement);
  expect(statements).toHaveLength(2);
  const db = createDatabase({ url: database.url });
  onTestFinished(() => db.close());
  for (const text of statements) expect(await db.query({ text })).not.toEqual([]);
});

test('the upcasters of upcasting.md return what its schemas describe', async () => {
  const placed = { customer: 'ada', total: 12.5, street: 'Main St 1', city: 'Ulm', coupon: 'SPRING' };
  const address = { street: 'Main St 1', city: 'Ulm' };
  const upcast = { customerId: 'ada', totalCents: 1250, address, channel: 'unknown' };
  const read = defineState(order, () => [] as object[], { OrderPlaced: (all, { payload }) => [...all, payload] });
  await givenStream(
    order,
    { type: 'OrderPlaced', payloadVersion: 1, payload: placed },
    { type: 'OrderPlaced', payloadVersion: 2, payload: { ...placed, total: undefined, totalCents: 1250 } },
  ).thenState(read, [upcast, upcast]);
  const names = defineState(person, () => [] as object[], { Registered: (all, { payload }) => [...all, payload] });
  await givenStream(
    person,
    { type: 'Registered', payloadVersion: 1, payload: { name: 'Ada King Lovelace' } },
    { type: 'Registered', payloadVersion: 1, payload: { name: 'Ada' } },
  ).thenState(names, [
    { firstName: 'Ada', lastName: 'King Lovelace' },
    { firstName: 'Ada', lastName: null },
  ]);
});

test('the workflow of reactors.md releases a room that is not paid in time, and reminds the guest of one that is', async () => {
  const arrival = '2026-01-10T15:00:00.000Z';
  const reserved = { family: reservation, streamId: 'r1', events: [{ type: 'RoomReserved', payload: { arrival } }] };
  const received = {
    family: payment,
    streamId: 'p1',
    events: [{ type: 'PaymentReceived', payload: { reservationId: 'r1' } }],
  };
  const minutes = 60_000;
  const waiting = givenReactor(reservationExpiry).when(reserved);
  await waiting.thenWaits({ for: 'PaymentReceived', key: 'r1', timeout: 30 * minutes });
  await waiting.whenTimePasses(30 * minutes).thenSteps({ command: releaseRoom, input: { reservationId: 'r1' } });
  const paid = waiting.whenTimePasses(29 * minutes).whenEvents(received);
  await paid.thenSteps();
  await paid.thenWaits({ until: '2026-01-09T15:00:00.000Z' });
  const reminded = paid.whenTimePasses(9 * 24 * 60 * minutes);
  await reminded.thenSteps({ command: remindGuest, input: { reservationId: 'r1' } });
  await reminded.thenResults('ack');
  await reminded.thenReplayable();
});

test('the versions of reactors.md stand beside each other, and run the steps that the page describes', async () => {
  const reactors = [bookingFlowV1, bookingFlowV2];
  expect(defineConfig({ reactors }).reactors).toEqual(reactors);
  const events = [{ type: 'BookingRequested', payload: { guest: 'ada', price: 500 } }] as const;
  const requested = { family: booking, streamId: 'b1', events };
  const confirmed = { command: confirmBooking, input: { bookingId: 'b1' } };
  await givenReactor(bookingFlowV1)
    .when(requested)
    .thenSteps({ command: charge, input: { guest: 'ada', amount: 500 } }, confirmed);
  await givenReactor(bookingFlowV2)
    .when(requested)
    .thenSteps(
      { command: holdRoom, input: { bookingId: 'b1' } },
      { command: charge, input: { guest: 'ada', amount: 50 } },
      confirmed,
    );
});

describe.each(pages)('%s shows the real responses:', (page, examples) => {
  test.each(examples)('$source', async ({ source, headers, answer }) => {
    const url = `${(others.get(page) ?? refold).url}/graphql`;
    const told =
      operationIn(source)?.operation === 'subscription' ? await firstOf(url, source) : await ask(url, source);
    const { answered } = told;
    for (const [name, value] of headersIn(headers ?? ''))
      expect([name, told.headers.get(name)]).toEqual([name, asShown(value)]);
    if (answer === undefined) return expect(answered.errors).toBeUndefined();
    const shown = JSON.parse(answer);
    // A page shows the whole response if it has errors, else only the data.
    const compared = shown.errors === undefined ? answered.data : answered;
    if (shown.errors === undefined) expect(answered.errors).toBeUndefined();
    expect(compared).toEqual(asShown(shown));
  });
});

test('the file of import.md becomes the events on the page, and is skipped the second time', async () => {
  const page = readFileSync(join(folder, 'import.md'), 'utf8');
  const block = (language: string) =>
    new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? expect.fail(`no ${language}`);
  const own = await createTestDatabase();
  const db = createDatabase({ url: own.url });
  const file = join(await mkdtemp(join(tmpdir(), 'refold-docs-')), 'payments.jsonl');
  onTestFinished(async () => {
    await db.close();
    await own.drop();
    await rm(dirname(file), { recursive: true });
  });
  await writeFile(file, block('jsonl'));
  const log = createEventLog(db, [account]);
  const imported = () => importEvents({ db, log, definition: paymentsImport, file });
  expect(page).toContain(doneText(await imported()));
  expect(page).toContain(doneText(await imported()));
  const { events } = await log.readAll({
    after: beginning,
    upTo: await log.head(),
    filter: [{ family: 'account', types: ['Paid'] }],
    limit: 10,
  });
  expect(events).toMatchObject(JSON.parse(block('json')));
});

function doneText({ lines, written, skipped }: ImportProgress): string {
  return `Done: ${lines} lines, ${written} events written, ${skipped} already there, in `;
}

/** Lines such as `refold-pin: cart_summary@1`, those of a GraphQL document in comments. */
function headersIn(text: string): (readonly [name: string, value: string])[] {
  return [...text.matchAll(/^(?:# )?([a-zA-Z-]+): (.+)$/gm)].map(([, name = '', value = '']) => [name, value]);
}

async function requestHeaders(source: string): Promise<Headers> {
  const headers = new Headers({ 'content-type': 'application/json' });
  for (const [name, value] of headersIn(/^(?:# .*\n)*/.exec(source)?.[0] ?? '')) {
    const holder = /<token of (.*)>/.exec(value);
    headers.set(name, holder?.[1] === undefined ? value : value.replace(holder[0], await tokenOf(holder[1])));
  }
  return headers;
}

interface Answer {
  readonly data?: unknown;
  readonly errors?: unknown;
}

interface Told {
  readonly answered: Answer;
  readonly headers: Headers;
}

async function ask(url: string, query: string): Promise<Told> {
  const headers = await requestHeaders(query);
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) });
  return { answered: (await response.json()) as Answer, headers: response.headers }; // a GraphQL answer
}

/** The first message of a subscription. */
async function firstOf(url: string, query: string): Promise<Told> {
  const leaving = new AbortController();
  const headers = await requestHeaders(query);
  headers.set('accept', 'text/event-stream');
  const body = JSON.stringify({ query });
  const response = await fetch(url, { method: 'POST', headers, body, signal: leaving.signal });
  let all = '';
  for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    all += part;
    const message = /^event: next\n(?:id: .*\n)?data: (.*)\n\n/m.exec(all)?.[1];
    if (message === undefined) continue;
    leaving.abort();
    return { answered: JSON.parse(message), headers: response.headers };
  }
  throw new Error(`The subscription ended before its first message: ${all}`);
}
