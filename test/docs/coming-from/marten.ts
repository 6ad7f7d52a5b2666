import { z } from 'zod';
import {
  CommandRejected,
  decimal,
  defineCommand,
  defineEvents,
  defineProjection,
  defineState,
  t,
} from '../../../src/index.ts';

export const invoice = defineEvents('invoice', {
  InvoiceOpened: z.object({ customerId: z.string() }),
  LineAdded: z.object({ amount: z.string() }),
  InvoiceSent: z.object({}),
});

const invoiceState = defineState(invoice, () => ({ open: false }), {
  InvoiceOpened: () => ({ open: true }),
  InvoiceSent: () => ({ open: false }),
});

export const addLine = defineCommand({
  name: 'addLine',
  input: z.object({ invoiceId: z.string(), amount: z.string() }),
  state: invoiceState,
  stream: ({ invoiceId }) => invoiceId,
  decide({ amount }, { open }) {
    if (!open) throw new CommandRejected('Only an open invoice can get lines.');
    return { type: 'LineAdded', payload: { amount: decimal(amount).toFixed(2) } };
  },
});

export const invoiceV1 = defineProjection({
  name: 'invoice',
  version: 1,
  mode: 'inline',
  events: invoice,
  table: {
    invoiceId: t.text().primaryKey(),
    customerId: t.text().index(),
    total: t.decimal(14, 2),
    sent: t.boolean(),
  },
  key: (event) => event.streamId,
  evolve: {
    InvoiceOpened: (_, { payload }) => ({ customerId: payload.customerId, total: '0', sent: false }),
    LineAdded: (row, { payload }) => row && { ...row, total: row.total.plus(payload.amount) },
    InvoiceSent: (row) => row && { ...row, sent: true },
  },
});
