import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { anonymous } from '../../../src/access.ts';
import { defineEvents, defineProjection, type PayloadRule, t, type Viewer } from '../../../src/index.ts';
import { active } from '../../schema/in-memory-services.ts';
import { startGateway } from '../gateway-under-test.ts';

const ticket = defineEvents('ticket', {
  Opened: z.object({ text: z.string(), desk: z.string(), cost: z.string() }),
  NoteAdded: z.object({ note: z.string() }),
  Moved: z.object({ desk: z.string() }),
});

const isLead = (viewer: Viewer) => viewer.roles.includes('lead');
const base = {
  name: 'ticket',
  version: 1,
  events: ticket,
  table: { ticketId: t.text().primaryKey(), text: t.text(), desk: t.text(), cost: t.text(), notes: t.integer() },
  key: (event: { readonly streamId: string }) => event.streamId,
  evolve: {
    Opened: (_: unknown, { payload }: { payload: { text: string; desk: string; cost: string } }) => ({
      ...payload,
      notes: 0,
    }),
    NoteAdded: (row: { notes: number } | null) => row && { ...row, notes: row.notes + 1 },
    Moved: (row: object | null, { payload }: { payload: { desk: string } }) => row && { ...row, desk: payload.desk },
  } as never, // of the columns above
} as const;
/** Each desk sees its tickets, and leads what they cost. */
const access = { rows: (viewer: Viewer) => ({ desk: { eq: viewer.tenant } }), columns: { cost: isLead } };

/** A ticket that was with the desk `a`, then `b`, then `a` again. */
async function desks(options: object, rules: object | string | null = access) {
  const projection = defineProjection({ ...base, ...options, ...(rules ? { access: rules } : {}) } as never);
  const gateway = await startGateway({
    served: [active(projection)],
    auth: ({ header }) => ({
      ...anonymous,
      id: 'ann',
      tenant: header('desk') ?? 'a',
      roles: [header('role') ?? 'agent'],
    }),
  });
  const opened = { text: 'It is broken.', desk: 'a', cost: '17' };
  await gateway.services.append(ticket, '1', { type: 'Opened', payload: opened });
  await gateway.services.append(ticket, '1', { type: 'NoteAdded', payload: { note: 'internal' } });
  await gateway.services.append(ticket, '1', { type: 'Moved', payload: { desk: 'b' } });
  await gateway.services.append(ticket, '1', { type: 'Moved', payload: { desk: 'a' } });
  return {
    ...gateway,
    async payloads(role = 'agent') {
      const { data, errors } = await gateway.post(
        '{ ticketEvents(ticketId: "1") { nodes { payload } } }',
        {},
        { role },
      );
      const page = data?.ticketEvents as { readonly nodes: readonly { readonly payload: unknown }[] } | undefined;
      return errors ?? page?.nodes.map(({ payload }) => payload);
    },
  };
}

const closed = [
  expect.objectContaining({
    message: "You may not read 'payload' of TicketEvent: 'history.payload' opens none of them to you.",
    extensions: { code: 'FORBIDDEN' },
  }),
];
const opened = { text: 'It is broken.', desk: 'a', cost: '17' };

describe('payloads of a projection with access rules', () => {
  test('are closed, also to those who may read every column, and the error names them', async () => {
    const { payloads, post } = await desks({ history: true });
    expect(await payloads()).toEqual(closed);
    expect(await payloads('lead')).toEqual(closed);
    const { data } = await post('{ ticketEvents(ticketId: "1") { nodes { type row { notes } } } }');
    expect(data).toMatchObject({
      ticketEvents: { nodes: [{ type: 'Opened' }, { type: 'NoteAdded' }, { type: 'Moved' }] },
    });
  });

  test('are closed if they are public, too', async () => {
    expect(await (await desks({ history: true }, 'public')).payloads()).toEqual(closed);
  });

  test.each<[string, Record<string, PayloadRule>, unknown, unknown]>([
    ['whole, to those who may read every column', { Opened: true }, closed, [opened, null, null]],
    [
      'by their fields',
      { Opened: ['text'], Moved: ['desk', 'other'] },
      [{ text: 'It is broken.' }, null, { desk: 'a' }],
      [{ text: 'It is broken.' }, null, { desk: 'a' }],
    ],
    [
      'by viewer',
      { NoteAdded: isLead, Opened: (viewer) => (isLead(viewer) ? true : ['desk']) },
      [{ desk: 'a' }, null, null],
      [opened, { note: 'internal' }, null],
    ],
    ['to nobody', { Opened: false, NoteAdded: () => false }, closed, closed],
  ])('are opened %s', async (_, payload, agents, leads) => {
    const { payloads } = await desks({ history: { payload } });
    expect(await payloads()).toEqual(agents);
    expect(await payloads('lead')).toEqual(leads);
  });
});

test('without access rules, payloads are open, unless rules of the history close them', async () => {
  const all = [opened, { note: 'internal' }, { desk: 'b' }, { desk: 'a' }];
  expect(await (await desks({ history: true }, null)).payloads()).toEqual(all);
  const rules = { payload: { Moved: true } };
  const some = [null, null, { desk: 'b' }, { desk: 'a' }];
  expect(await (await desks({ history: rules }, null)).payloads()).toEqual(some);
});

test('the events behind a row are for those whom `history.access` allows', async () => {
  const { post, gateway } = await desks({ history: { access: isLead } });
  const query =
    '{ ticketEvents(ticketId: "1") { totalCount } ticket(ticketId: "1", asOf: { position: "1" }) { text } }';
  const agents = await post(query);
  expect(agents.errors).toMatchObject([{ message: 'You may not read the events of Ticket.', path: ['ticketEvents'] }]);
  expect((await post(query, {}, { role: 'lead' })).data).toMatchObject({ ticketEvents: { totalCount: 3 } });
  // The program itself is no viewer.
  expect((await gateway.execute(query)).data).toMatchObject({ ticketEvents: { totalCount: 4 } });
});

test('a moment at which the viewer may not see the row is null, and not the state before', async () => {
  const { post } = await desks({ history: true });
  const at = (position: number, fields = 'notes') =>
    post(`{ ticket(ticketId: "1", asOf: { position: "${position}" }) { ${fields} } }`);
  const states = await Promise.all([1, 2, 3, 4].map((position) => at(position)));
  expect(states.map(({ data }) => data?.ticket)).toEqual([{ notes: 0 }, { notes: 1 }, null, { notes: 1 }]);
  const { errors } = await at(1, 'cost');
  expect(errors).toMatchObject([{ message: "You may not read 'cost' of Ticket." }]);
});

test.each([
  [{ payload: { Opend: true } }, "'history.payload' has 'Opend', which is unknown. Did you mean 'Opened'?"],
  [{ payloads: {} }, "'history' has 'payloads', which is unknown."],
  [{ payload: { Opened: 'text' } }, "'history.payload.Opened' is true, false, a list of the payload's fields"],
  [{ access: 'public' }, "'history.access' is a function"],
])('mistakes in the rules are refused: %j', (history, message) => {
  expect(() => defineProjection({ ...base, history } as never)).toThrow(message);
});

test('the rules have the types of their events', () => {
  defineProjection({
    name: 'ticket',
    version: 1,
    events: ticket,
    table: { ticketId: t.text().primaryKey(), text: t.text() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, { payload }) => ({ text: payload.text }) },
    history: {
      stream: (ticketId) => ticketId.toLowerCase(),
      access: (viewer) => viewer.roles.includes('lead'),
      payload: { Opened: (viewer) => (viewer.id === 'ann' ? true : ['text', 'desk']) },
    },
  });
  // @ts-expect-error: the payload has no such field
  const _field: PayloadRule<{ readonly text: string }> = ['txt'];
});
