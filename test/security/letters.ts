import { z } from 'zod';
import {
  CommandRejected,
  defineCommand,
  defineEvents,
  defineProjection,
  defineState,
  many,
  one,
  t,
  tenant,
} from '../../src/index.ts';

/** Letters of tenants, with a column of every type and one that only auditors read: what the adversarial set attacks. */
export const letter = defineEvents('letter', {
  LetterSent: z.object({
    tenantId: z.string(),
    senderId: z.string(),
    subject: z.string(),
    secret: z.string(),
    weight: z.int(),
    serial: z.string(),
    postage: z.string(),
    trackingId: z.string(),
    day: z.string(),
    sentAt: z.string(),
    registered: z.boolean(),
    extra: z.unknown(),
  }),
});

export const letterV1 = defineProjection({
  name: 'letter',
  version: 1,
  events: letter,
  table: {
    letterId: t.text().primaryKey(),
    tenantId: t.text().index(),
    senderId: t.text().index(),
    subject: t.text().index(),
    secret: t.text().index(),
    weight: t.integer().index(),
    serial: t.bigint().index(),
    postage: t.decimal(20, 4).index(),
    trackingId: t.uuid().unique(),
    day: t.date().index(),
    sentAt: t.timestamptz().index(),
    registered: t.boolean().index(),
    status: t.enum(['Sent', 'Read']).index(),
    extra: t.object({ note: t.text() }).nullable(),
  },
  key: (event) => event.streamId,
  evolve: {
    LetterSent: (_, { payload: { extra, serial, ...payload } }) => ({
      ...payload,
      serial: BigInt(serial),
      status: 'Sent',
      extra: { note: JSON.stringify(extra ?? null) },
    }),
  },
  relations: { sender: one('sender', { from: 'senderId' }) },
  history: true,
  access: { ...tenant('tenantId'), columns: { secret: (viewer) => viewer.roles.includes('auditor') } },
});

export const senderV1 = defineProjection({
  name: 'sender',
  version: 1,
  events: letter,
  table: { senderId: t.text().primaryKey(), tenantId: t.text().index(), letters: t.integer().index() },
  key: (event) => event.payload.senderId,
  evolve: {
    LetterSent: (row, { payload }) => ({ tenantId: payload.tenantId, letters: (row?.letters ?? 0) + 1 }),
  },
  relations: { sent: many('letter', { to: 'senderId' }) },
  access: tenant('tenantId'),
});

const letterState = defineState(letter, () => ({ tenantId: null as string | null }), {
  LetterSent: (_, { payload }) => ({ tenantId: payload.tenantId }),
});

/** An input with values of every kind that clients can send. */
export const sendLetter = defineCommand({
  name: 'sendLetter',
  input: z.object({
    letterId: z.string().min(1),
    tenantId: z.string(),
    subject: z.string().max(10_000),
    weight: z.int().optional(),
    ratio: z.number().optional(),
    day: z.iso.date().optional(),
    sentAt: z.iso.datetime().optional(),
    trackingId: z.uuid().optional(),
    status: z.enum(['Sent', 'Read']).optional(),
    extra: z.json().optional(),
    labels: z.record(z.string(), z.string()).optional(),
    parts: z
      .array(z.object({ text: z.string() }))
      .max(1000)
      .optional(),
  }),
  state: letterState,
  stream: ({ letterId }) => letterId,
  access: (viewer, input) => viewer.tenant === input.tenantId,
  decide: (input, state) => {
    if (state.tenantId !== null) throw new CommandRejected('There is a letter by this id.');
    return { type: 'LetterSent', payload: letterSent(input) };
  },
});

/** The event's payload, with default values for what is not given. */
export function letterSent(given: {
  readonly letterId: string;
  readonly tenantId: string;
  readonly subject: string;
  readonly secret?: string;
  readonly weight?: number | undefined;
  readonly day?: string | undefined;
  readonly sentAt?: string | undefined;
  readonly trackingId?: string | undefined;
  readonly extra?: unknown;
}) {
  const { letterId, tenantId, subject, secret = 'none', weight = 1, extra = null } = given;
  return {
    tenantId,
    senderId: `${tenantId}-sender`,
    subject,
    secret,
    weight,
    serial: '1',
    postage: '1.50',
    trackingId: given.trackingId ?? trackingIdOf(letterId),
    day: given.day ?? '2026-01-31',
    sentAt: given.sentAt ?? '2026-01-31T12:00:00Z',
    registered: true,
    extra,
  };
}

export function trackingIdOf(letterId: string): string {
  return `00000000-0000-4000-8000-${Buffer.from(letterId).toString('hex').slice(-12).padStart(12, '0')}`;
}
