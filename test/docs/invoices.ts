import { SignJWT } from 'jose';
import { z } from 'zod';
import { defineConfig, defineEvents, defineProjection, jwt, t } from '../../src/index.ts';

/** The application of the page about access. */
export const invoice = defineEvents('invoice', {
  InvoiceSent: z.object({ customerId: z.string(), total: z.string(), margin: z.string() }),
});

const invoiceV1 = defineProjection({
  name: 'invoice',
  version: 1,
  events: invoice,
  table: {
    invoiceId: t.text().primaryKey(),
    customerId: t.text().index(),
    total: t.decimal(14, 2),
    margin: t.decimal(14, 2),
  },
  key: (event) => event.streamId,
  evolve: { InvoiceSent: (_, { payload }) => payload },
  access: {
    rows: (viewer) => (viewer.roles.includes('auditor') ? true : { customerId: { eq: viewer.id } }),
    columns: { margin: (viewer) => viewer.roles.includes('auditor') },
  },
});

const issuer = 'https://login.example.com/';
const secret = 'a secret of the documentation, of enough bytes';

export const invoices = defineConfig({
  development: false,
  auth: jwt({ keys: secret, issuer, audience: 'shop' }),
  projections: [invoiceV1],
  gateway: { port: 0 },
});

/** @param holder as a page names it: `ada`, or with roles `eve, auditor` */
export function tokenOf(holder: string): Promise<string> {
  const [subject = '', ...roles] = holder.split(', ');
  return new SignJWT({ roles })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(subject)
    .setIssuer(issuer)
    .setAudience('shop')
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(secret));
}
