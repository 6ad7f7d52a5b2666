/** Whatever an application throws, wherever: it is noticed, stored and shown, and everything else goes on. */
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  CommandRejected,
  createRefold,
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  defineReactor,
  defineState,
  type ErrorPolicy,
  type ReactorErrorPolicy,
  type Refold,
  RefoldError,
  t,
} from '../../src/index.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { thrownThings } from '../support/thrown-things.ts';
import { until } from '../support/until.ts';

const things = Object.keys(thrownThings);
// The worst of each kind, where each needs a unit of its own.
const worst = [
  'a text with NUL',
  'ten million characters',
  'null',
  'an error with a member that throws',
  'a revoked proxy',
];
const shape = z.object({ place: z.string(), which: z.string() });

function throwAt(here: string, { place, which }: { readonly place: string; readonly which: string }): void {
  if (place === here) throw thrownThings[which]?.();
}

// The payload had another form before. Its upcaster throws.
const former = defineEvents('trial', { Tried: shape, Old: shape });
const trial = defineEvents(
  'trial',
  { Tried: shape, Old: shape },
  {
    upcasters: {
      Old: [
        (old: z.infer<typeof shape>) => {
          throwAt('upcaster', old);
          return old;
        },
      ],
    },
  },
);
const ended = defineEvents('ended', { Ended: shape });

const table = { id: t.text().primaryKey(), place: t.text(), secret: t.text().nullable() };
const folding = (
  name: string,
  onError: ErrorPolicy | ErrorPolicy['policy'],
  more: { mode?: 'inline'; only?: string } = {},
) =>
  defineProjection({
    name,
    version: 1,
    events: trial,
    table: { ...table, ...(name === 'hiding' ? { secret: t.text().personal().nullable() } : {}) },
    ...(more.mode ? { mode: more.mode } : {}),
    key: ({ streamId, payload }) => {
      throwAt(`${name} key`, payload);
      return streamId;
    },
    evolve: {
      Tried: (_, { payload }) => {
        if (more.only === undefined || more.only === payload.which) throwAt(`${name} evolve`, payload);
        return { place: payload.place, secret: null };
      },
      ...(more.only === undefined
        ? { Old: (_: unknown, { payload }: { payload: { place: string } }) => ({ place: payload.place, secret: null }) }
        : {}),
    },
    onError,
  });

const skipped: string[] = [];
const letters = folding('letters', 'dead-letter');
const hiding = folding('hiding', 'dead-letter');
const retried = folding('retried', {
  policy: 'dead-letter',
  retries: [{ times: 1, first: 1, on: (error) => throwAt('never', error as never) === undefined }],
});
const skipping = folding('skipping', { policy: 'skip', onSkip: ({ event }) => void skipped.push(event.streamId) });
const strict = folding('strict', 'stop', { mode: 'inline' });
const lenient = folding('lenient', 'dead-letter', { mode: 'inline' });
// Of each thing a version that it stops.
const stopping = worst.map((which, index) => folding(`stopping${index}`, 'stop', { only: which }));
const stoppingPlace = (index: number) => `stopping${index} evolve`;

const state = defineState(trial, () => ({}), {});
const attempt = defineCommand({
  name: 'attempt',
  state,
  input: z.object({ id: z.string(), place: z.string(), which: z.string() }),
  stream: ({ id }) => id,
  decide: ({ place, which }) => {
    throwAt('decide', { place, which });
    if (place === 'rejection')
      throw new CommandRejected(`no: \u0000 ${'🛒'.slice(0, 1)}`, {
        given: '\u0000',
        thing: thrownThings[which]?.(),
        big: 1n,
      });
    return { type: 'Tried', payload: { place, which } };
  },
});

const outcomes = new Map<string, unknown>();
const reacting = (name: string, onError: ReactorErrorPolicy | 'stop') =>
  defineReactor({
    name,
    events: trial,
    from: 'beginning',
    handle: {
      Tried: async ({ payload, streamId }, { execute }) => {
        throwAt(name, payload);
        if (name === 'steps' && payload.place === 'step') {
          const input = { id: `${streamId}-step`, place: 'rejection', which: payload.which };
          await execute(attempt, input).catch((error: unknown) => outcomes.set(payload.which, error));
        }
      },
    },
    onError,
  });
const reactors = [
  reacting('kept', { policy: 'dead-letter', retries: [] }),
  reacting('left', { policy: 'skip', retries: [], onSkip: ({ event }) => void skipped.push(`left ${event.streamId}`) }),
  reacting('again', { policy: 'dead-letter', retries: [{ times: 1, first: 1, on: 'NO_SUCH_CODE' }] }),
  reacting('steps', { policy: 'dead-letter', retries: [] }),
  ...worst.map((_, index) => reacting(`halting${index}`, 'stop')),
];

// Versions of another family: what their hooks and rules throw must not disturb those above.
const hooked = worst.map((which, index) =>
  defineProjection({
    name: `ruled${index}`,
    version: 1,
    events: ended,
    table,
    key: ({ streamId }) => streamId,
    evolve: { Ended: (_, { payload }) => ({ place: payload.place, secret: null }) },
    access: {
      public: true,
      rows: () => {
        throw thrownThings[which]?.();
      },
    },
  }),
);

let database: TestDatabase;
let refold: Refold;
let db: Database;
const lines: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  refold = await createRefold(
    defineConfig({
      events: [trial, ended],
      projections: [letters, hiding, retried, skipping, strict, lenient, ...stopping, ...hooked],
      commands: [attempt],
      reactors,
      auth: () => null,
      gateway: { port: 0 },
      database: { url: database.url },
    }),
    { migrate: true, logger: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }) },
  );
  await until(async () => (await refold.status()).every(({ state: one }) => one === 'active'));
  await until(async () => (await refold.status()).filter(({ inline }) => inline === 'live').length === 2);
});
afterAll(async () => {
  await refold.stop();
  await db.close();
  await database.drop();
});

/** Appends one event for each thing, again with the same key if the server has ended the transaction: a busy machine may fold for long. */
async function tryAll(
  place: string,
  family = trial,
  type: 'Tried' | 'Old' = 'Tried',
): Promise<readonly PromiseSettledResult<unknown>[]> {
  const outcomes: PromiseSettledResult<unknown>[] = [];
  for (const which of things) {
    const streamId = `${place} ${which}`;
    const append = () =>
      refold.log.append({ family, streamId, events: [{ type, payload: { place, which } }], idempotencyKey: streamId });
    const isEnded = (error: unknown) => error instanceof RefoldError && error.code === 'OUTCOME_UNKNOWN';
    const again = (error: unknown): Promise<unknown> =>
      isEnded(error) ? append().catch(again) : Promise.reject(error);
    outcomes.push(...(await Promise.allSettled([append().catch(again)])));
  }
  return outcomes;
}

async function caughtUp(): Promise<void> {
  const horizon = await refold.log.horizon();
  await until(async () =>
    (await refold.status()).every(
      ({ position, processor, inline }) => inline || processor === 'stopped' || position >= horizon,
    ),
  );
}

const lettersOf = (name: string) =>
  db.query<{ stream_id: string; message: string }>({
    text: `select stream_id, error ->> 'message' as message from refold.dead_letters where name = $1 order by stream_id`,
    values: [name],
  });

test('each thing that a fold throws becomes a dead letter with a message, or is skipped, and the version goes on', async () => {
  for (const place of [
    'letters evolve',
    'letters key',
    'hiding evolve',
    'retried evolve',
    'skipping evolve',
    'lenient evolve',
  ])
    for (const one of await tryAll(place)) expect(one).toMatchObject({ status: 'fulfilled' });
  await tryAll('upcaster', former, 'Old');
  await caughtUp();
  for (const name of ['letters', 'hiding', 'retried', 'lenient']) {
    const found = await lettersOf(name);
    expect(found.every(({ message }) => message.length > 0 && message.length <= 10_000)).toBe(true);
    // An append that folds has the payload as it was given.
    const upcast = name === 'lenient' ? [] : things.map((which) => `upcaster ${which}`);
    const expected = [...things.map((which) => `${name} evolve ${which}`), ...upcast];
    const own = name === 'letters' ? [...expected, ...things.map((which) => `letters key ${which}`)] : expected;
    expect(found.map(({ stream_id }) => stream_id).toSorted()).toEqual(own.toSorted());
  }
  expect(skipped.filter((one) => one.startsWith('skipping')).toSorted()).toEqual(
    things.map((which) => `skipping evolve ${which}`).toSorted(),
  );
});

test('each thing that an inline fold throws refuses its append with a reason, and later ones are written', async () => {
  const outcome = await tryAll('strict evolve');
  for (const one of outcome) {
    if (one.status !== 'rejected') throw new Error('it was written');
    expect(one.reason).toMatchObject({
      code: 'EVOLVE_FAILED',
      message: expect.stringContaining('Nothing was appended'),
    });
  }
  expect((await tryAll('nowhere')).every(({ status }) => status === 'fulfilled')).toBe(true);
});

test('each thing stops a version with the policy stop, with a reason that its status shows', async () => {
  for (const [index, which] of worst.entries())
    await refold.log.append({
      family: trial,
      streamId: `stop ${index}`,
      events: [{ type: 'Tried', payload: { place: stoppingPlace(index), which } }],
    });
  const stopped = await until(async () => {
    const all = (await refold.status()).filter(({ name }) => name.startsWith('stopping'));
    return all.every(({ processor }) => processor === 'stopped') && all;
  });
  expect(stopped).toHaveLength(worst.length);
  for (const { error } of stopped) expect(error?.message).toMatch(/evolve of 'Tried' failed at position \d+/);
});

test('each thing that a handler throws becomes a dead letter, is skipped, or stops the reactor', async () => {
  for (const place of ['kept', 'left', 'again']) await tryAll(place);
  for (const [index, which] of worst.entries())
    await refold.log.append({
      family: trial,
      streamId: `halt ${index}`,
      events: [{ type: 'Tried', payload: { place: `halting${index}`, which } }],
    });
  const head = await refold.log.head();
  const all = await until(async () => {
    const found = await refold.reactors.status();
    return found.every(({ state: one, position }) => one === 'stopped' || position >= head) && found;
  });
  expect(
    all
      .filter(({ state: one }) => one === 'stopped')
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(worst.map((_, index) => `halting${index}`).toSorted());
  for (const name of ['kept', 'again'])
    expect((await refold.reactors.deadLetters(name)).map(({ streamId }) => streamId).toSorted()).toEqual(
      things.map((which) => `${name} ${which}`).toSorted(),
    );
  expect(skipped.filter((one) => one.startsWith('left')).toSorted()).toEqual(
    things.map((which) => `left left ${which}`).toSorted(),
  );
});

test('a rejection is stored with any reason and any details, and is the same again', async () => {
  await tryAll('step');
  await until(() => outcomes.size === things.length);
  for (const error of outcomes.values()) expect(error).toBeInstanceOf(CommandRejected);
  expect(await refold.reactors.deadLetters('steps')).toEqual([]);
});

test('each thing that a command or a rule throws is an error of its operation alone', async () => {
  const command = `mutation ($which: String!, $place: String!) { attempt(input: { id: "c", place: $place, which: $which }) { position } }`;
  for (const which of things) {
    for (const [place, code] of [
      ['decide', 'INTERNAL_SERVER_ERROR'],
      ['rejection', 'COMMAND_REJECTED'],
    ]) {
      const { errors } = await refold.graphql(command, { which, place });
      expect([which, errors?.[0]?.extensions.code]).toEqual([which, code]);
    }
  }
  for (const [index, which] of worst.entries()) {
    const { data, errors } = await refold.graphql(
      `{ ruled${index}(id: "1") { id } other: letters(id: "nobody") { id } }`,
      {},
      { id: 'ann', roles: [] } as never, // a viewer's other members are of the application
    );
    expect([which, errors?.[0]?.extensions.code]).toEqual([which, 'INTERNAL_SERVER_ERROR']);
    expect(data).toEqual({ [`ruled${index}`]: null, other: null });
  }
});

test('the log has a line of bounded size for each', () => {
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(100_000);
  expect(lines.filter((line) => line.includes('the database refuses') || line.includes('unsupported Unicode'))).toEqual(
    [],
  );
});
