import { SignJWT } from 'jose';
import { z } from 'zod';
import {
  defineCommand,
  defineEvents,
  defineProjection,
  jwt,
  many,
  one,
  t,
  tenant,
  type Viewer,
} from '../../src/index.ts';

/** Notes of tenants who must never see each other's, with an author, a secret that only auditors read, and a public board. */
export const note = defineEvents('note', {
  NoteWritten: z.object({
    tenantId: z.string(),
    authorId: z.string(),
    text: z.string(),
    secret: z.string(),
    size: z.int(),
  }),
  NoteMoved: z.object({ tenantId: z.string() }),
  NoteRemoved: z.object({}),
});

const isAuditor = (viewer: Viewer) => viewer.roles.includes('auditor');

export const noteV1 = defineProjection({
  name: 'note',
  version: 1,
  events: note,
  table: {
    noteId: t.text().primaryKey(),
    tenantId: t.text().index(),
    authorId: t.text().index(),
    text: t.text().index(),
    secret: t.text().index(),
    size: t.integer().index(),
  },
  key: (event) => event.streamId,
  evolve: {
    NoteWritten: (_, { payload }) => payload,
    NoteMoved: (row, { payload }) => row && { ...row, tenantId: payload.tenantId },
    NoteRemoved: () => null,
  },
  relations: { author: one('author', { from: 'authorId' }) },
  // Auditors read every column, so payloads as well.
  history: { payload: { NoteWritten: isAuditor, NoteMoved: isAuditor, NoteRemoved: isAuditor } },
  access: { ...tenant('tenantId'), columns: { secret: isAuditor } },
});

export const authorV1 = defineProjection({
  name: 'author',
  version: 1,
  events: note,
  table: { authorId: t.text().primaryKey(), tenantId: t.text().index(), notes: t.integer() },
  key: (event) => (event.type === 'NoteWritten' ? event.payload.authorId : null),
  evolve: {
    NoteWritten: (row, { payload }) => ({ tenantId: payload.tenantId, notes: (row?.notes ?? 0) + 1 }),
  },
  relations: { written: many('note', { to: 'authorId' }) },
  access: tenant('tenantId'),
});

/** The number of notes is public. */
export const boardV1 = defineProjection({
  name: 'board',
  version: 1,
  events: note,
  table: { board: t.text().primaryKey(), notes: t.integer() },
  key: () => 'all',
  evolve: { NoteWritten: (row) => ({ notes: (row?.notes ?? 0) + 1 }) },
  access: 'public',
});

/** Has no access rule: for every authenticated viewer. */
export const sizeV1 = defineProjection({
  name: 'note_size',
  version: 1,
  events: note,
  table: { size: t.integer().primaryKey(), notes: t.integer() },
  key: (event) => (event.type === 'NoteWritten' ? event.payload.size : null),
  evolve: { NoteWritten: (row) => ({ notes: (row?.notes ?? 0) + 1 }) },
});

export const writeNote = defineCommand({
  name: 'writeNote',
  input: z.object({ noteId: z.string(), tenantId: z.string(), authorId: z.string(), text: z.string() }),
  events: note,
  stream: ({ noteId }) => noteId,
  access: (viewer, input) => viewer.tenant === input.tenantId,
  decide: ({ tenantId, authorId, text }) => ({
    type: 'NoteWritten',
    payload: { tenantId, authorId, text, secret: 'none', size: text.length },
  }),
});

const secret = 'a shared secret of more than thirty-two bytes';
const issuer = 'https://login.example';

export const auth = jwt({ keys: secret, issuer, audience: 'notes' });

export interface TokenOptions {
  readonly sub?: string;
  readonly tenant?: string;
  readonly roles?: readonly string[];
  /** Seconds from now. */
  readonly expiresIn?: number;
  readonly issuer?: string;
  readonly audience?: string;
  readonly secret?: string;
}

export function token(options: TokenOptions = {}): Promise<string> {
  const { sub = 'ada', tenant: of, roles, expiresIn = 600 } = options;
  const claims = { ...(of === undefined ? {} : { tenant: of }), ...(roles === undefined ? {} : { roles }) };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(sub)
    .setIssuer(options.issuer ?? issuer)
    .setAudience(options.audience ?? 'notes')
    .setExpirationTime(Math.floor(Date.now() / 1000) + expiresIn)
    .sign(new TextEncoder().encode(options.secret ?? secret));
}
