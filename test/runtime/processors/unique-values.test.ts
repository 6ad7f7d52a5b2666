import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  createRefold,
  defineConfig,
  defineEvents,
  defineProjection,
  type Refold,
  type RefoldError,
  t,
} from '../../../src/index.ts';
import { untilCaughtUp } from '../../support/patient.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const member = defineEvents('member', {
  Joined: z.object({ email: z.string(), badge: z.int() }),
  Moved: z.object({ email: z.string(), badge: z.int() }),
  Left: z.object({}),
});

const guest = defineEvents('guest', { Invited: z.object({ email: z.string() }) });
const guestV1 = defineProjection({
  name: 'guest',
  version: 1,
  events: guest,
  table: { guestId: t.text().primaryKey(), email: t.text().unique() },
  key: (event) => event.streamId,
  evolve: { Invited: (_, { payload }) => payload },
});

const projectionOf = (name: string, mode: 'async' | 'inline') =>
  defineProjection({
    name,
    version: 1,
    mode,
    events: member,
    table: { memberId: t.text().primaryKey(), email: t.text().unique(), badge: t.integer().nullable().unique() },
    key: (event) => event.streamId,
    evolve: {
      Joined: (_, { payload }) => payload,
      Moved: (row, { payload }) => row && { ...row, ...payload },
      Left: () => null,
    },
  });

let database: TestDatabase;
let refold: Refold;
beforeAll(async () => {
  database = await createTestDatabase();
  const projections = [projectionOf('behind', 'async'), projectionOf('within', 'inline'), guestV1];
  refold = await createRefold(
    defineConfig({ database: { url: database.url }, projections, gateway: { port: 0 }, development: true }),
    { logger: pino({ level: process.env.LOG ?? 'silent' }) },
  );
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

const joined = (email: string, badge: number) => ({ type: 'Joined', payload: { email, badge } }) as const;
const moved = (email: string, badge: number) => ({ type: 'Moved', payload: { email, badge } }) as const;
const left = { type: 'Left', payload: {} } as const;
type MemberEvent = ReturnType<typeof joined> | ReturnType<typeof moved> | typeof left;

/** All at once, and so in one batch. */
async function write(streams: Readonly<Record<string, readonly MemberEvent[]>>): Promise<void> {
  const entries = Object.entries(streams).map(([streamId, events]) => ({ family: member, streamId, events }));
  await refold.log.appendToStreams({ streams: entries });
  await untilCaughtUp(refold);
}

test.each(['behind', 'within'])('a unique value can move between rows in one batch: %s', async (name) => {
  const id = (member: string) => `${name}-${member}`;
  const at = (place: string) => `${place}@${name}.example`;
  const [one, two, three] = name === 'behind' ? [1, 2, 3] : [11, 12, 13];
  await write({
    [id('ada')]: [joined(at('a'), one)],
    [id('bob')]: [joined(at('b'), two)],
    [id('cy')]: [joined(at('c'), three)],
  });
  // Two rows swap values with a step between; one row is removed and another is added with its values.
  await write({
    [id('ada')]: [moved(at('z'), two + 100)],
    [id('bob')]: [moved(at('a'), one)],
    [id('cy')]: [left],
    [id('dee')]: [joined(at('c'), three)],
  });
  await write({ [id('ada')]: [moved(at('b'), two)] });
  const plural = { behind: 'behinds', within: 'withins' }[name];
  const { data, errors } = await refold.graphql(
    `{ list: ${plural}(where: { memberId: { startsWith: "${name}" } }) { nodes { memberId email badge } } taken: ${name}ByEmail(email: "${at('c')}") { memberId } }`,
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    list: {
      nodes: [
        { memberId: id('ada'), email: at('b'), badge: two },
        { memberId: id('bob'), email: at('a'), badge: one },
        { memberId: id('dee'), email: at('c'), badge: three },
      ],
    },
    taken: { memberId: id('dee') },
  });
});

test('a value that is taken refuses the append of an inline projection, and no other append', async () => {
  const append = (streamId: string, event: MemberEvent) =>
    refold.log.append({ family: member, streamId, events: [event] }).then(
      () => 'written',
      (error) => (error as RefoldError).message,
    );
  await refold.log.append({ family: member, streamId: 'eve', events: [joined('e@example', 21)] });
  const outcomes = await Promise.all([
    append('fay', joined('f@example', 22)),
    append('gus', joined('e@example', 23)),
    append('hal', joined('h@example', 24)),
  ]);
  expect(outcomes).toEqual(['written', expect.stringContaining('the row ["gus"] that \'Joined\' leads to'), 'written']);
  expect(outcomes[1]).toContain("its 'email' is already taken by another row");
  expect(outcomes[1]).not.toMatch(/e@example|'eve'|\["eve"\]/);
});

test('a value that two rows hold permanently stops the projection, and the error says what to change', async () => {
  const invite = (streamId: string) =>
    refold.log.append({ family: guest, streamId, events: [{ type: 'Invited', payload: { email: 'i@example' } }] });
  await invite('ida');
  await invite('ivo');
  const error = await until(async () => (await refold.status()).find(({ name }) => name === 'guest')?.error);
  expect(error.message).toMatch(/the row \["ivo"\].*its 'email' is already taken by another row/);
  expect(error.message).not.toMatch(/i@example|ida/);
  expect(error.message).toMatch(/Declare it with \.index\(\)/);
});
