import { z } from 'zod';
import { CommandRejected, defineCommand, defineEvents, defineProjection, defineState, t } from '../../src/index.ts';

/** A domain whose read models have every kind of column, and whose commands every kind of input that GraphQL can express. */
export const parcel = defineEvents('parcel', {
  ParcelPacked: z.object({ row: z.custom<ParcelRow>() }),
  ParcelWeighed: z.object({ weight: z.string() }),
  ParcelShipped: z.object({ courier: z.string(), at: z.string() }),
  ParcelLost: z.object({}),
  ParcelForgotten: z.object({}),
});

const columns = {
  parcelId: t.text().primaryKey(),
  trackingId: t.uuid().unique(),
  status: t.enum(['Packed', 'Shipped', 'Lost']).index().describe('Where it is in its life.'),
  weight: t.decimal(10, 3).index(),
  grams: t.bigint().index(),
  pieces: t.integer().index(),
  fragile: t.boolean().index(),
  packedOn: t.date().index(),
  shippedAt: t.timestamptz().nullable().index(),
  courier: t.text().nullable().index({ search: true }),
  insuredFor: t.decimal(12, 2).nullable().index(),
  note: t.text().nullable().deprecated('Read the remarks.'),
  remarks: t.list(t.text()).default([]).index(),
  labels: t
    .list(t.enum(['Express', 'Gift']))
    .default([])
    .index(),
  prices: t.list(t.decimal(8, 2)),
  size: t.object({
    width: t.integer(),
    label: t.object({ text: t.text(), printedAt: t.timestamptz().nullable() }).nullable(),
  }),
  items: t.list(t.object({ sku: t.text(), quantity: t.integer(), price: t.decimal(8, 2) })).index(),
  grid: t.list(t.list(t.integer().nullable())),
  extra: t.json<{ readonly anything: readonly (number | string)[] }>().nullable().index(),
};

export const parcelV1 = defineProjection({
  name: 'parcel',
  version: 1,
  description: 'A parcel on its way.',
  events: parcel,
  table: columns,
  key: (event) => event.streamId,
  evolve: {
    ParcelPacked: (_, { payload }) => ({ ...payload.row, grams: BigInt(payload.row.grams) }),
    ParcelWeighed: (row, { payload }) => row && { ...row, weight: payload.weight },
    ParcelShipped: (row, { payload }) =>
      row && { ...row, status: 'Shipped', courier: payload.courier, shippedAt: payload.at },
    ParcelLost: (row) => row && { ...row, status: 'Lost' },
    ParcelForgotten: () => null,
  },
});

/** The second version has another enum, and no courier. */
export const parcelV2 = defineProjection({
  name: 'parcel',
  version: 2,
  events: parcel,
  table: {
    parcelId: t.text().primaryKey(),
    status: t.enum(['Packed', 'Shipped', 'Lost', 'Found']).index(),
    weight: t.decimal(12, 4).index(),
    pieces: t.integer().index(),
    heavy: t.boolean(),
  },
  key: (event) => event.streamId,
  evolve: {
    ParcelPacked: (_, { payload: { row } }) => ({
      status: 'Packed',
      weight: row.weight,
      pieces: row.pieces,
      heavy: Number(row.weight) > 10,
    }),
    ParcelWeighed: (row, { payload }) => row && { ...row, weight: payload.weight, heavy: Number(payload.weight) > 10 },
    ParcelShipped: (row) => row && { ...row, status: 'Shipped' },
    ParcelLost: (row) => row && { ...row, status: 'Lost' },
    ParcelForgotten: () => null,
  },
});

/** A composite key, with every kind of key column. */
export const courierDayV1 = defineProjection({
  name: 'courier_day',
  version: 1,
  events: parcel,
  table: {
    courier: t.text().primaryKey(),
    day: t.date().primaryKey(),
    hub: t.enum(['North', 'South']).primaryKey(),
    lane: t.integer().primaryKey(),
    parcels: t.integer().index(),
  },
  key: (event) =>
    event.type === 'ParcelShipped'
      ? { courier: event.payload.courier, day: event.payload.at.slice(0, 10), hub: 'North', lane: 1 }
      : null,
  evolve: { ParcelShipped: (row) => ({ parcels: (row?.parcels ?? 0) + 1 }) },
});

const parcelState = defineState(parcel, (): { status: string } => ({ status: 'None' }), {
  ParcelPacked: () => ({ status: 'Packed' }),
  ParcelShipped: () => ({ status: 'Shipped' }),
});

const parcelId = z.string().min(1).describe('Who packs it, names it.');

export const packParcel = defineCommand({
  name: 'packParcel',
  description: 'Packs a parcel.',
  input: z.object({
    parcelId,
    weight: z
      .string()
      .regex(/^\d+(\.\d{1,3})?$/, "expected a weight such as '1.250'")
      .default('1.5'),
    pieces: z.int().min(1).optional(),
    fragile: z.boolean().nullish(),
    priority: z.enum(['Low', 'High']).default('Low'),
    remarks: z.array(z.string()).optional(),
  }),
  state: parcelState,
  stream: (input) => input.parcelId,
  decide({ weight, pieces = 1, fragile, remarks = [] }, state) {
    if (state.status !== 'None') throw new CommandRejected('It is packed already.', { status: state.status });
    return {
      type: 'ParcelPacked',
      payload: { row: parcelRow({ weight, pieces, fragile: fragile ?? false, remarks }) },
    };
  },
});

export const shipParcel = defineCommand({
  name: 'shipParcel',
  input: z.object({ parcelId, courier: z.string() }),
  state: parcelState,
  emits: ['ParcelShipped'],
  stream: (input) => input.parcelId,
  decide: ({ courier }, state, { now }) =>
    state.status === 'Shipped' ? [] : { type: 'ParcelShipped', payload: { courier, at: now } },
});

/** Has no input. */
export const loseEverything = defineCommand({
  name: 'loseEverything',
  input: z.object({}),
  state: parcelState,
  emits: ['ParcelLost'],
  stream: () => 'everything',
  decide: () => ({ type: 'ParcelLost', payload: {} }),
});

/** A packed parcel as in its event, as JSON: decimals and bigints are texts. */
export interface ParcelRow {
  readonly trackingId: string;
  readonly status: 'Packed' | 'Shipped' | 'Lost';
  readonly weight: string;
  readonly grams: string;
  readonly pieces: number;
  readonly fragile: boolean;
  readonly packedOn: string;
  readonly insuredFor?: string | null;
  readonly note: string | null;
  readonly remarks: string[];
  readonly prices: string[];
  readonly size: { readonly width: number; readonly label: { text: string; printedAt: string | null } | null };
  readonly items: { readonly sku: string; readonly quantity: number; readonly price: string }[];
  readonly grid: (number | null)[][];
  readonly extra: { readonly anything: (number | string)[] } | null;
}

export function parcelRow(change: Partial<ParcelRow> = {}): ParcelRow {
  return {
    trackingId: '0189dd0a-97a5-7c3b-8a5e-9a6b8f6f0b11',
    status: 'Packed',
    weight: '1.5',
    grams: '1500',
    pieces: 2,
    fragile: false,
    packedOn: '2026-01-31',
    note: null,
    remarks: ['handle with care'],
    prices: ['1.5', '20'],
    size: { width: 30, label: { text: 'To Ada', printedAt: '2026-01-31T12:00:00.123456Z' } },
    items: [{ sku: 'mug', quantity: 2, price: '7.5' }],
    grid: [[1, null], []],
    extra: { anything: [1, 'two'] },
    ...change,
  };
}

export const allCommands = [packParcel, shipParcel, loseEverything];
