import { z } from 'zod';
import { defineEvents, defineProjection, many, one, t } from '../../src/index.ts';

/** Things with a column of every kind, their owners, and their places, which have a key of several columns. */
const thing = defineEvents('thing', { Set: z.record(z.string(), z.unknown()) });
const owner = defineEvents('owner', { Set: z.record(z.string(), z.unknown()) });
const place = defineEvents('place', { Set: z.record(z.string(), z.unknown()) });
export const families = { thing, owner, place };

const big = (value: unknown) => BigInt(String(value));
const bytes = (value: unknown) => (value === null ? null : Buffer.from(String(value), 'base64'));

export const thingV1 = defineProjection({
  name: 'thing',
  version: 1,
  events: thing,
  table: {
    thingId: t.text().primaryKey(),
    ownerId: t.text().index(),
    underId: t.text().nullable().index(),
    label: t.text().nullable().index({ search: true }),
    token: t.uuid().unique(),
    seal: t.bytes({ maxBytes: 64 }).nullable().index(),
    count: t.integer().index(),
    big: t.bigint().index(),
    amount: t.decimal(20, 4).index(),
    flag: t.boolean().index(),
    day: t.date().index(),
    at: t.timestamptz().nullable().index(),
    status: t.enum(['Opened', 'Closed']).index(),
    secret: t.integer().nullable().index(),
    json: t.json().nullable(),
    detail: t.object({
      name: t.text(),
      price: t.decimal(12, 2).nullable(),
      count: t.bigint(),
      at: t.timestamptz(),
      proof: t.bytes().nullable(),
      more: t.object({ flag: t.boolean(), day: t.date().nullable(), json: t.json() }).nullable(),
    }),
    items: t.list(t.object({ at: t.timestamptz(), tags: t.list(t.text()), price: t.decimal(10, 3) })).nullable(),
    prices: t.list(t.decimal(10, 2)),
    grid: t.list(t.list(t.integer().nullable())),
  },
  key: (event) => event.streamId,
  evolve: {
    Set: (_, { payload }) => {
      const given = payload as never as Record<string, never> & { detail: Record<string, never> }; // as written by the test
      const detail = { ...given.detail, count: big(given.detail.count), proof: bytes(given.detail.proof) };
      return { ...given, big: big(given.big), seal: bytes(given.seal), detail } as never;
    },
  },
  relations: {
    owner: one('owner', { from: 'ownerId' }),
    lies: one('place', { from: ['day', 'count'] }),
    under: one('thing', { from: 'underId' }),
    siblings: many('thing', { from: 'ownerId', to: 'ownerId' }),
    namesakes: many('thing', { from: 'label', to: 'label' }),
    over: many('thing', { to: 'underId' }),
  },
  access: {
    public: true,
    rows: ({ tenant }) => tenant === null || { or: [{ label: { eq: tenant } }, { count: { in: [1, 2] } }] },
    columns: { secret: ({ roles }) => roles.includes('auditor') },
  },
});

export const ownerV1 = defineProjection({
  name: 'owner',
  version: 1,
  events: owner,
  table: { ownerId: t.text().primaryKey(), name: t.text().index(), rank: t.integer().index() },
  key: (event) => event.streamId,
  evolve: { Set: (_, { payload }) => payload as never }, // as written by the test
  relations: { things: many('thing', { to: 'ownerId' }) },
  access: { public: true, rows: ({ tenant }) => tenant === null || { rank: { gte: 2 } } },
});

export const placeV1 = defineProjection({
  name: 'place',
  version: 1,
  events: place,
  table: { day: t.date().primaryKey(), lane: t.integer().primaryKey(), name: t.text() },
  key: ({ payload }) => ({ day: String(payload.day), lane: Number(payload.lane) }),
  evolve: { Set: (_, { payload }) => ({ name: String(payload.name) }) },
  relations: { things: many('thing', { from: 'lane', to: 'count' }) },
  access: 'public',
});
