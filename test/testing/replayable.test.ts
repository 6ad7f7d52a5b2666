import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection, t } from '../../src/index.ts';
import { givenEvents } from '../../src/testing.ts';

const visit = defineEvents('visit', {
  Visited: z.object({ at: z.string(), guests: z.array(z.string()), paid: z.number() }),
});
type Visited = z.infer<(typeof visit)['schemas']['Visited']>;
const payload: Visited = { at: '2026-01-01T00:00:00.000Z', guests: ['iz', 'ız', 'Çan'], paid: 1234.5 };

const replayed = (value: (payload: Visited) => unknown) => {
  const projection = defineProjection({
    name: 'visits',
    version: 1,
    events: visit,
    table: { visitId: t.text().primaryKey(), value: t.text() },
    key: ({ streamId }) => streamId,
    evolve: { Visited: (_, event) => ({ value: String(value(event.payload)) }) },
  });
  return givenEvents({ family: visit, streamId: 'v', events: [{ type: 'Visited', payload }] })
    .projectedBy(projection)
    .thenReplayable();
};

const surroundings = () => [
  Date,
  process.env.TZ,
  Date.prototype.toLocaleString,
  Number.prototype.toLocaleString,
  Intl.NumberFormat,
  new Date(0).toString(),
];
const before = surroundings();
afterEach(() => {
  expect(surroundings()).toEqual(before);
});

describe('an evolve is not replayable if it depends on', () => {
  const clock = "visits@1 returns other rows if the clock is moved. It reads the clock: use the event's `recordedAt`";
  const zone = 'visits@1 returns other rows in another time zone. It depends on the time zone of the process';
  const language = 'visits@1 returns other rows in another language. It depends on the language of the process';
  const found: readonly (readonly [string, (payload: Visited) => unknown, string])[] = [
    ['the year', () => new Date().getFullYear(), clock],
    ['the month', () => new Date().getMonth(), clock],
    ['the weekday', () => new Date().getDay(), clock],
    ['the day', () => new Date().toISOString().slice(0, 10), clock],
    ['the days since 1970', () => Math.floor(Date.now() / 86_400_000), clock],
    ['the hour', () => new Date().getUTCHours(), clock],
    ['the date as a text', () => Date().slice(0, 15), clock],
    ['an age in years', ({ at }) => new Date().getUTCFullYear() - new Date(at).getUTCFullYear(), clock],
    ['a local time', ({ at }) => new Date(at).toLocaleString('en-US'), zone],
    ['a local date', ({ at }) => new Date(at).toLocaleDateString('en-US'), zone],
    ['a local day', ({ at }) => new Date(at).getDate(), zone],
    ['a time without a zone', () => new Date('2026-01-01T12:00').toISOString(), zone],
    [
      'a date in the default language',
      ({ at }) => new Date(at).toLocaleString(undefined, { timeZone: 'UTC' }),
      language,
    ],
    ['an amount in the default language', ({ paid }) => paid.toLocaleString(), language],
    ['a format of the default language', ({ paid }) => new Intl.NumberFormat().format(paid), language],
    ['letters in the default language', () => 'i'.toLocaleUpperCase(), language],
    ['an order in the default language', ({ guests }) => guests.toSorted((a, b) => a.localeCompare(b)), language],
  ];
  test.each(found)('%s', async (_, value, message) => {
    await expect(replayed(value)).rejects.toThrow(message);
  });
});

test('named zones and languages, times of events and dates that are not now are replayable', async () => {
  await replayed(({ at }) => new Date(at).toLocaleString('en-US', { timeZone: 'Europe/Berlin' }));
  await replayed(
    ({ at, paid }) => `${new Date(at).toISOString()} ${paid.toLocaleString('de-DE')} ${new Date(2026, 0, 1).getDate()}`,
  );
  await replayed(({ guests }) => guests.toSorted(new Intl.Collator('sv').compare));
  await replayed(({ at }) => new Date(at) instanceof Date && new Date(new Date(at)).getTime() === Date.parse(at));
});

test('an evolve that throws leaves the clock, the zone and the language as they were', async () => {
  let calls = 0;
  const failing = replayed(() => {
    if (++calls > 1) throw new Error('not twice');
    return 'once';
  });
  await expect(failing).rejects.toThrow('not twice');
});
