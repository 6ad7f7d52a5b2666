import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  columnLimits,
  createRefold,
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  type Refold,
  t,
} from '../../../src/index.ts';
import { listDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { untilCaughtUp } from '../../support/patient.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

const text = z.string();
const shelf = defineEvents('shelf', {
  Placed: z.object({ hall: text, row: text, label: text, code: text, tenant: text, note: text.optional() }),
});
const table = {
  hall: t.text().primaryKey(),
  row: t.text().primaryKey(),
  label: t.text().index(),
  note: t.text().default('').index({ search: true }),
  code: t.text().unique({ within: 'tenant' }),
  tenant: t.text().personal(),
};
const shelfV1 = defineProjection({
  name: 'shelf',
  version: 1,
  events: shelf,
  table,
  key: ({ payload: { hall, row } }) => ({ hall, row }),
  evolve: {
    Placed: (_, { payload }) => {
      if (payload.code === 'cursed') throw new Error(`${payload.tenant} has a cursed shelf`);
      return payload;
    },
  },
  onError: 'dead-letter',
});
const badgeV1 = defineProjection({
  name: 'badge',
  version: 1,
  mode: 'inline',
  events: shelf,
  table: { id: t.text().primaryKey(), code: t.text().unique({ within: 'tenant' }), tenant: t.text() },
  key: ({ streamId }) => streamId,
  evolve: { Placed: (_, { payload: { code, tenant } }) => ({ code, tenant }) },
});
const place = defineCommand({
  name: 'placeShelf',
  events: shelf,
  input: z.object({ id: text, code: text, tenant: text }),
  stream: ({ id }) => id,
  decide: ({ id, code, tenant }) => [{ type: 'Placed', payload: { hall: 'h', row: id, label: 'l', code, tenant } }],
});

let database: TestDatabase;
let refold: Refold;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  refold = await createRefold(
    defineConfig({
      database: { url: database.url },
      projections: [shelfV1, badgeV1],
      commands: [place],
      gateway: { port: 0 },
    }),
    { logger: pino({ level: process.env.LOG ?? 'silent' }) },
  );
});
afterAll(async () => {
  await refold.stop();
  await db.close();
  await database.drop();
});

async function placed(
  streamId: string,
  payload: { hall: string; row: string; label: string; code: string; tenant: string; note?: string },
) {
  await refold.log.append({ family: shelf, streamId, events: [{ type: 'Placed', payload }] });
  await untilCaughtUp(refold);
}
const letters = () => listDeadLetters({ db, log: refold.log, readSchema: 'read_models', projection: shelfV1 });

/** A text that no index can compress. */
const noise = (bytes = 0) => randomBytes(bytes).toString('hex').slice(0, bytes);

test('texts as long as their limits are indexed, and a longer one in a filter finds nothing', async () => {
  const { hall, row, label, code, tenant } = columnLimits(shelfV1);
  const texts = { hall: noise(hall.maxBytes), row: noise(row.maxBytes), label: noise(label.maxBytes) };
  // Beside the keys, an index holds 256 characters of it. These have four bytes each.
  const note = Array.from(randomBytes(20_000), (byte) => String.fromCodePoint(0x20000 + byte)).join('');
  await placed('long', { ...texts, note, code: noise(code.maxBytes), tenant: noise(tenant.maxBytes) });
  const query = 'query ($label: String!) { shelves(where: { label: { eq: $label } }) { nodes { label } } }';
  const found = async (label: string) => (await refold.graphql(query, { label })).data;
  expect(await found(texts.label)).toEqual({ shelves: { nodes: [{ label: texts.label }] } });
  expect(await found(noise(5000))).toEqual({ shelves: { nodes: [] } });
  const byNote = 'query ($note: String!) { shelves(where: { note: { eq: $note } }) { nodes { note } } }';
  expect((await refold.graphql(byNote, { note })).data).toEqual({ shelves: { nodes: [{ note }] } });
  expect([hall.maxBytes, columnLimits(shelfV1).note.maxBytes]).toEqual([820, undefined]);
});

test('a longer imported text becomes a dead letter whose error names column and limit, and other rows continue', async () => {
  const payload = { hall: 'h', row: 'r', label: noise(2000), code: '1', tenant: 'one' };
  // Other appends of this text are refused.
  const imported = { family: shelf, streamId: 'longer', events: [{ type: 'Placed', payload }] };
  expect(await refold.log.appendInOrder([imported])).toEqual([{ kind: 'written' }]);
  await placed('short', { hall: 'h', row: 's', label: 'short', code: '2', tenant: 'one' });
  const [letter] = await letters();
  expect(letter?.error?.message).toMatch(
    /column 'label' has an index and holds 2000 bytes; .* at most 888\. Shorten it in evolve\. .*\.index\(\{ long: true \}\)/,
  );
  const { data } = await refold.graphql('{ shelf(hall: "h", row: "s") { label } }');
  expect(data).toEqual({ shelf: { label: 'short' } });
});

test('two tenants may have the same value if it is unique within the tenant', async () => {
  await placed('x1', { hall: 'h', row: 'x1', label: 'x', code: 'X', tenant: 'one' });
  await placed('x2', { hall: 'h', row: 'x2', label: 'x', code: 'X', tenant: 'two' });
  const { data } = await refold.graphql(
    '{ one: shelfByCode(code: "X", tenant: "one") { row } two: shelfByCode(code: "X", tenant: "two") { row } }',
  );
  expect(data).toEqual({ one: { row: 'x1' }, two: { row: 'x2' } });
});

test('a command whose value is taken is rejected, and reveals nothing of the row that has it', async () => {
  const command = (id: string, tenant: string) =>
    refold.graphql(`mutation { placeShelf(input: { id: "${id}", code: "Y", tenant: "${tenant}" }) { position } }`);
  expect((await command('y1', 'first')).errors).toBeUndefined();
  expect((await command('y2', 'second')).errors).toBeUndefined();
  const { errors } = await command('y3', 'first');
  expect(errors).toMatchObject([
    { message: "'code' is already taken.", extensions: { code: 'COMMAND_REJECTED', details: { column: 'code' } } },
  ]);
  expect(JSON.stringify(errors)).not.toMatch(/y1|first|badge/);
});

test('the error of evolve is kept without the values of personal columns', async () => {
  await placed('cursed', { hall: 'h', row: 'c', label: 'x', code: 'cursed', tenant: 'Ada Lovelace' });
  const letter = (await letters()).find(({ streamId }) => streamId === 'cursed');
  expect(letter?.error?.message).toContain('(hidden) has a (hidden) shelf');
  expect(JSON.stringify(letter?.error)).not.toContain('Lovelace');
});
