import { trackingIdOf } from './letters.ts';
import type { Operation } from './send.ts';
import { ownLetters } from './target.ts';

/** An attempt of one tenant to see, count, change or find out something of the other's. */
export interface ForeignAttempt extends Operation {
  readonly name: string;
  /** The code of its errors; null: it succeeds, with this data. */
  readonly code: string | null;
  readonly data?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const forged = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url');
const idOf = (letterId: string) => forged(1, 'letter', letterId);
const noLetter = { letter: null };
const none = { letters: { nodes: [], totalCount: 0 } };
const all = { letters: { totalCount: ownLetters } };
const listed = (where: string) => `{ letters(where: ${where}) { nodes { letterId subject tenantId } totalCount } }`;
const after = 'query ($c: String!) { letters(after: $c) { nodes { letterId } } }';
const send =
  'mutation ($input: SendLetterInput!, $key: String) { sendLetter(input: $input, idempotencyKey: $key) { position letter { subject } } }';

export const foreignAttempts: readonly ForeignAttempt[] = [
  {
    name: 'by key',
    query: '{ letter(letterId: "south-1") { letterId subject tenantId extra { note } } }',
    code: null,
    data: noLetter,
  },
  {
    name: 'by a key that nobody has, in the same words',
    query: '{ letter(letterId: "nobody-1") { letterId } }',
    code: null,
    data: noLetter,
  },
  {
    name: 'by a unique column',
    query: `{ letterByTrackingId(trackingId: "${trackingIdOf('south-1')}") { letterId subject } }`,
    code: null,
    data: { letterByTrackingId: null },
  },
  {
    name: 'by a global id',
    query: `{ node(id: "${idOf('south-1')}") { id ... on Letter { subject } } }`,
    code: null,
    data: { node: null },
  },
  {
    name: 'by global ids among own ones',
    query: `{ nodes(ids: ["${idOf('south-1')}", "${idOf('north-1')}", "${idOf('south-2')}"]) { ... on Letter { letterId } } }`,
    code: null,
    data: { nodes: [null, { letterId: 'north-1' }, null] },
  },
  { name: 'in a list', query: listed('{ tenantId: { eq: "south" } }'), code: null, data: none },
  {
    name: 'in a list by or',
    query: '{ letters(where: { or: [{ tenantId: { eq: "south" } }, { weight: { gte: 0 } }] }) { totalCount } }',
    code: null,
    data: all,
  },
  {
    name: 'in a list by a double negation',
    query: '{ letters(where: { not: { not: { tenantId: { startsWith: "" } } } }) { totalCount } }',
    code: null,
    data: all,
  },
  {
    name: 'in a list by prefix',
    query: listed('{ subject: { startsWith: "Zwiebel" } }').replace('letterId subject', 'letterId'),
    code: null,
    data: none,
  },
  {
    name: 'by its neighbours in an order',
    query:
      '{ letters(orderBy: [{ tenantId: DESC }], first: 1) { nodes { tenantId } pageInfo { hasNextPage hasPreviousPage } } }',
    code: null,
    data: { letters: { nodes: [{ tenantId: 'north' }], pageInfo: { hasNextPage: true, hasPreviousPage: false } } },
  },
  {
    name: 'by whether a last page has more',
    query: `{ letters(first: ${ownLetters}) { pageInfo { hasNextPage } } }`,
    code: null,
    data: { letters: { pageInfo: { hasNextPage: false } } },
  },
  {
    name: 'through a relation of an own row',
    query: '{ letters(first: 1) { nodes { sender { senderId sent { nodes { tenantId } totalCount } } } } }',
    code: null,
    data: {
      letters: {
        nodes: [
          {
            sender: {
              senderId: 'north-sender',
              sent: { nodes: [{ tenantId: 'north' }, { tenantId: 'north' }, { tenantId: 'north' }], totalCount: 3 },
            },
          },
        ],
      },
    },
  },
  {
    name: 'by what senders have sent',
    query: '{ senders(where: { sent: { some: { tenantId: { eq: "south" } } } }) { totalCount } }',
    code: null,
    data: { senders: { totalCount: 0 } },
  },
  {
    name: 'by what senders have not sent',
    query: '{ senders(where: { sent: { none: { subject: { startsWith: "Zwiebel" } } } }) { totalCount } }',
    code: null,
    data: { senders: { totalCount: 1 } },
  },
  {
    name: 'the other sender',
    query: '{ sender(senderId: "south-sender") { letters } }',
    code: null,
    data: { sender: null },
  },
  {
    name: 'in a count',
    query: '{ lettersAggregate { count sum { weight } } }',
    code: null,
    data: { lettersAggregate: { count: ownLetters, sum: { weight: String(ownLetters) } } },
  },
  {
    name: 'in a count of what is foreign',
    query: '{ lettersAggregate(where: { tenantId: { ne: "north" } }) { count max { subject } } }',
    code: null,
    data: { lettersAggregate: { count: 0, max: { subject: null } } },
  },
  {
    name: 'in groups',
    query: '{ lettersGrouped(by: [tenantId]) { key { tenantId } count } }',
    code: null,
    data: { lettersGrouped: [{ key: { tenantId: 'north' }, count: ownLetters }] },
  },
  {
    name: 'in groups by what they have',
    query: '{ lettersGrouped(by: [subject], having: { count: { gt: 1 } }) { key { subject } } }',
    code: null,
    data: { lettersGrouped: [] },
  },
  {
    name: 'as of then',
    query: '{ letter(letterId: "south-1", asOf: { time: "2100-01-01T00:00:00Z" }) { subject } }',
    code: null,
    data: noLetter,
  },
  { name: 'its payloads', query: '{ letterEvents(letterId: "south-1") { nodes { payload } } }', code: 'FORBIDDEN' },
  { name: 'a column that one may not read', query: '{ letter(letterId: "north-1") { secret } }', code: 'FORBIDDEN' },
  {
    name: 'such a column by its order',
    query: '{ letters(orderBy: [{ secret: ASC }]) { nodes { letterId } } }',
    code: 'FORBIDDEN',
  },
  {
    name: 'such a column by a filter',
    query: '{ letters(where: { secret: { startsWith: "Z" } }) { totalCount } }',
    code: 'FORBIDDEN',
  },
  {
    name: 'such a column by a filter of another table',
    query: '{ senders(where: { sent: { some: { secret: { startsWith: "Z" } } } }) { totalCount } }',
    code: 'FORBIDDEN',
  },
  { name: 'such a column by its greatest value', query: '{ lettersAggregate { max { secret } } }', code: 'FORBIDDEN' },
  { name: 'such a column by groups', query: '{ lettersGrouped(by: [secret]) { count } }', code: 'FORBIDDEN' },
  {
    name: 'such a column by what groups have',
    query: '{ lettersGrouped(by: [tenantId], having: { max: { secret: { gt: "Z" } } }) { count } }',
    code: 'FORBIDDEN',
  },
  {
    name: 'such a column under another name',
    query: '{ letter(letterId: "north-1") { subject: secret } }',
    code: 'FORBIDDEN',
  },

  { name: 'a cursor that is none', query: after, variables: { c: 'x' }, code: 'BAD_USER_INPUT' },
  {
    name: 'a cursor of another list',
    query: after,
    variables: { c: forged('sender, senderId', 'south-sender') },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a cursor of another order',
    query: after,
    variables: { c: forged('letter, subject asc last, letterId', 'a', 'south-1') },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a cursor with a value of another type',
    query: after,
    variables: { c: forged('letter, letterId', { $gt: '' }) },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a cursor with too many values',
    query: after,
    variables: { c: forged('letter, letterId', 'a', 'b') },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a cursor with NUL',
    query: after,
    variables: { c: forged('letter, letterId', '\u0000') },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a cursor of a hundred levels',
    query: after,
    variables: { c: Buffer.from(`${'['.repeat(5000)}${']'.repeat(5000)}`).toString('base64url') },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a cursor before all foreign rows',
    query: after,
    variables: { c: forged('letter, letterId', 'north-3') },
    code: null,
    data: { letters: { nodes: [] } },
  },
  {
    name: 'a cursor at a foreign row',
    query: 'query ($c: String!) { letters(before: $c, last: 5) { nodes { tenantId } } }',
    variables: { c: forged('letter, letterId', 'south-2') },
    code: null,
    data: { letters: { nodes: [{ tenantId: 'north' }, { tenantId: 'north' }, { tenantId: 'north' }] } },
  },

  {
    name: 'a global id of another kind',
    query: 'query ($id: ID!) { node(id: $id) { id } }',
    variables: { id: forged(1, 'events', 'south-1') },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a global id of another format',
    query: 'query ($id: ID!) { node(id: $id) { id } }',
    variables: { id: forged(2, 'letter', 'south-1') },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a global id with more parts',
    query: 'query ($id: ID!) { node(id: $id) { id } }',
    variables: { id: forged(1, 'letter', 'north-1', 'south-1') },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a global id of an object',
    query: 'query ($id: ID!) { node(id: $id) { id } }',
    variables: { id: forged(1, 'letter', { tenantId: 'south' }) },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a global id in other words',
    query: 'query ($id: ID!) { node(id: $id) { id } }',
    variables: { id: Buffer.from('[1, "letter", "north-1"]').toString('base64url') },
    code: 'BAD_USER_INPUT',
  },

  {
    name: 'a pin of a version that is none',
    query: '{ letters { totalCount } }',
    headers: { 'refold-pin': 'letter@99' },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a pin with SQL',
    query: '{ letters { totalCount } }',
    headers: { 'refold-pin': "letter@1'; select 1" },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'two pins of one projection',
    query: '{ letters { totalCount } }',
    headers: { 'refold-pin': 'letter@1, letter@1' },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a thousand pins',
    query: '{ letters { totalCount } }',
    headers: { 'refold-pin': Array.from({ length: 500 }, (_, index) => `letter@${index + 1}`).join(',') },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a position that the log never had',
    query: '{ letters { totalCount } }',
    headers: { 'refold-after': '-1' },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a position beyond 64 bits',
    query: '{ letters { totalCount } }',
    headers: { 'refold-after': '9223372036854775808' },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a position in words',
    query: 'query @after(position: "now()") { letters { totalCount } }',
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'a position that no log can reach',
    query: '{ letters { totalCount } }',
    headers: { 'refold-after': '140737488355329' },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'as of a position that the log has not reached',
    query: '{ letter(letterId: "north-1", asOf: { position: "9223372036854775807" }) { subject } }',
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'as of a position below all',
    query: '{ letter(letterId: "north-1", asOf: { position: "-5" }) { subject } }',
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'as of two moments',
    query: 'query ($m: AsOf) { letter(letterId: "north-1", asOf: $m) { subject } }',
    variables: { m: { position: '1', time: '2026-01-01T00:00:00Z' } },
    code: 'BAD_USER_INPUT',
  },
  {
    name: 'as of the year 0',
    query: 'query ($m: AsOf) { letter(letterId: "north-1", asOf: $m) { subject } }',
    variables: { m: { time: '0000-01-01T00:00:00Z' } },
    code: 'BAD_USER_INPUT',
  },

  {
    name: 'to write as the other tenant',
    query: send,
    variables: { input: { letterId: 'new-1', tenantId: 'south', subject: 'x' } },
    code: 'FORBIDDEN',
  },
  {
    name: 'to write what the other tenant has',
    query: send,
    variables: { input: { letterId: 'south-1', tenantId: 'north', subject: 'x' } },
    code: 'COMMAND_REJECTED',
  },
  {
    name: 'an idempotency key of the other tenant',
    query: send,
    variables: { key: 'monday', input: { letterId: 'south-9', tenantId: 'south', subject: 'x' } },
    code: 'FORBIDDEN',
  },
];

/** After it, the viewer has one row more. */
export const writingAttempts: readonly ForeignAttempt[] = [
  {
    name: 'a column that one may not read, of what one has written',
    query:
      'mutation { sendLetter(input: { letterId: "own-9", tenantId: "north", subject: "x" }) { letter { secret } } }',
    code: 'FORBIDDEN',
  },
  {
    name: 'an idempotency key that the other tenant has used, for something own',
    query: send,
    variables: { key: 'monday', input: { letterId: 'north-9', tenantId: 'north', subject: 'mine' } },
    code: null,
  },
];
