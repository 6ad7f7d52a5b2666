import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import type { Import, ImportLine } from '../../src/index.ts';
import { buildSchema } from '../../src/schema/build-schema.ts';
import { createInMemoryLog, givenEvents, givenReactor, givenStream } from '../../src/testing.ts';
import { active, versionMap } from '../schema/in-memory-services.ts';
import * as axon from './coming-from/axon.ts';
import * as emmett from './coming-from/emmett.ts';
import * as tables from './coming-from/hasura-and-postgraphile.ts';
import * as kurrent from './coming-from/kurrentdb.ts';
import * as marten from './coming-from/marten.ts';
import * as reference from './coming-from/postgresql-event-sourcing.ts';
import { historyImport } from './coming-from/readme.ts';

const folder = join(import.meta.dirname, '../../docs/coming-from');
const names = readdirSync(folder);
const pageOf = (name: string) => readFileSync(join(folder, name), 'utf8');

/** Code of Refold is marked `ts`; code of other systems in TypeScript is marked `js`. */
function blocksOf(name: string, language: string): readonly string[] {
  return [...pageOf(name).matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 'gs'))].map(([, code = '']) => code);
}

test.each(names)('the code of %s is the code that runs', (name) => {
  const file = join(import.meta.dirname, 'coming-from', `${name.toLowerCase().replace('.md', '')}.ts`);
  const runs = flat(readFileSync(file, 'utf8'));
  const blocks = blocksOf(name, 'ts');
  expect(blocks.length).toBeGreaterThan(0);
  expect(blocks.map(flat).filter((code) => !runs.includes(code))).toEqual([]);
});

function flat(code: string): string {
  const lines = code.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join('\n');
}

test.each([
  ['emmett.md', [emmett.cartSummaryV1], [emmett.addProductItem]],
  ['kurrentdb.md', [kurrent.occupancyV1], []],
])('the operations of %s fit the schema of its code', (name, projections, commands) => {
  const versions = versionMap(projections.map((one) => active(one)));
  const schema = buildSchema({ versions, commands, maxPageSize: 50 });
  const [operations = expect.fail(`no operations in ${name}`)] = blocksOf(name, 'gql');
  expect(validate(schema, parse(operations))).toEqual([]);
});

test('a confirmed cart takes no items, and its summary counts them', async () => {
  const added = { type: 'ProductItemAdded', payload: { productId: 'mug', quantity: 2 } } as const;
  const confirmed = { type: 'ShoppingCartConfirmed', payload: { confirmedAt: '2026-01-31T12:00:00Z' } } as const;
  const input = { cartId: 'c1', ...added.payload };
  await givenStream(emmett.cart, added).when(emmett.addProductItem, input).thenEvents(added);
  await givenStream(emmett.cart, added, confirmed).when(emmett.addProductItem, input).thenRejected();
  await givenEvents({ family: emmett.cart, streamId: 'c1', events: [added, added, confirmed] })
    .projectedBy(emmett.cartSummaryV1)
    .thenRows({ cartId: 'c1', items: 4, confirmed: true });
});

test('an invoice takes lines until it is sent', async () => {
  const opened = { type: 'InvoiceOpened', payload: { customerId: 'ada' } } as const;
  const line = { type: 'LineAdded', payload: { amount: '12.50' } } as const;
  const sent = { type: 'InvoiceSent', payload: {} } as const;
  const input = { invoiceId: 'i1', amount: '12.5' };
  await givenStream(marten.invoice).when(marten.addLine, input).thenRejected();
  await givenStream(marten.invoice, opened).when(marten.addLine, input).thenEvents(line);
  await givenStream(marten.invoice, opened, line, sent).when(marten.addLine, input).thenRejected();
  await givenEvents({ family: marten.invoice, streamId: 'i1', events: [opened, line, line, sent] })
    .projectedBy(marten.invoiceV1)
    .thenRows({ invoiceId: 'i1', customerId: 'ada', total: '25.00', sent: true });
});

test('an account is not overdrawn', async () => {
  const deposited = { type: 'Deposited', payload: { cents: 500 } } as const;
  const withdrawn = { type: 'Withdrawn', payload: { cents: 300 } } as const;
  const input = { accountId: 'a1', cents: 300 };
  await givenStream(axon.account, deposited).when(axon.withdraw, input).thenEvents(withdrawn);
  const short = givenStream(axon.account, deposited, withdrawn).when(axon.withdraw, input);
  await short.thenRejected('The account does not hold that much.', { balance: 200 });
  await givenEvents({ family: axon.account, streamId: 'a1', events: [deposited, withdrawn] })
    .projectedBy(axon.accountBalanceV1)
    .thenRows({ accountId: 'a1', cents: 200n });
});

test('guests are counted and greeted; an expected version is the number of events', async () => {
  const entered = { type: 'GuestEntered', payload: { name: 'Ada' } } as const;
  const left = { type: 'GuestLeft', payload: { name: 'Ada' } } as const;
  const visit = { family: kurrent.room, streamId: 'r1', events: [entered, left, entered] };
  await givenEvents(visit).projectedBy(kurrent.occupancyV1).thenRows({ roomId: 'r1', guests: 1 });
  await givenReactor(kurrent.greeting).when(visit).thenResults('ack', 'ack');
  const shown = expect.stringMatching(/^Ada \(greeting\/[0-9a-f-]{36}\)$/);
  expect(kurrent.doorSign.shown).toEqual([shown, shown]);
  const log = createInMemoryLog();
  await log.append(visit);
  await log.append({ ...visit, events: [left], expectedVersion: 3 });
  await expect(log.append({ ...visit, expectedVersion: 3 })).rejects.toMatchObject({ code: 'CONCURRENCY_CONFLICT' });
});

test('a row becomes the first event of its stream, and its owner completes it', async () => {
  const [taken] = await imported(tables.todoImport, '{"id":"t1","owner_id":"ada","title":"Sleep","done":false}');
  const events = [{ type: 'TodoTakenOver', payload: { ownerId: 'ada', title: 'Sleep', done: false } }] as const;
  expect(taken).toMatchObject({ streamId: 't1', ...events[0] });
  const done = { type: 'TodoDone', payload: {} } as const;
  const given = givenStream(tables.todo, ...events);
  await given.when(tables.completeTodo, { todoId: 't1' }, { metadata: { actor: 'ada' } }).thenEvents(done);
  await given.when(tables.completeTodo, { todoId: 't1' }, { metadata: { actor: 'bob' } }).thenRejected();
  await given.when(tables.completeTodo, { todoId: 't1' }).thenRejected();
  await givenEvents({ family: tables.todo, streamId: 't1', events: [...events, done] })
    .projectedBy(tables.todoV1)
    .thenRows({ todoId: 't1', ownerId: 'ada', title: 'Sleep', done: true });
});

test('only an accepted ride is finished, and its state is kept with snapshots', async () => {
  const rideId = '7c1f0a52-94be-4c0d-b6a1-0d5e2f3a4b61';
  const driverId = '1e8d3b47-5a2c-4f9e-8b7d-6c5a4b3e2d10';
  const requested = { type: 'RideRequested', payload: { riderId: rideId, price: '123.45' } } as const;
  const accepted = { type: 'RideAccepted', payload: { driverId } } as const;
  const finished = { type: 'RideFinished', payload: {} } as const;
  await givenStream(reference.ride, requested).when(reference.finishRide, { rideId }).thenRejected();
  await givenStream(reference.ride, requested, accepted).when(reference.finishRide, { rideId }).thenEvents(finished);
  await givenStream(reference.ride, requested, accepted).thenState(reference.rideState, { status: 'Accepted' });
  await givenEvents({ family: reference.ride, streamId: rideId, events: [requested, accepted, finished] })
    .projectedBy(reference.rideV1)
    .thenRows({ rideId, riderId: rideId, driverId, price: '123.45', status: 'Finished' });
});

test('the exported lines become the events on the page; a gap in a stream is refused', async () => {
  const [lines = '', [events = '']] = [blocksOf('README.md', 'jsonl')[0], blocksOf('README.md', 'json')];
  expect(await imported(historyImport, lines)).toMatchObject(JSON.parse(events));
  const [, ...later] = lines.split('\n');
  await expect(imported(historyImport, later.join('\n'))).rejects.toMatchObject({ code: 'CONCURRENCY_CONFLICT' });
});

/** The events that an import makes of a file, in a log that checks payloads and versions. */
async function imported(definition: Import, file: string) {
  const log = createInMemoryLog();
  for await (const append of definition.toAppends(linesOf(file))) await log.append(append);
  return log.events;
}

async function* linesOf(file: string): AsyncIterable<ImportLine> {
  for (const [index, text] of file.trim().split('\n').entries()) yield { text, number: index + 1 };
}
