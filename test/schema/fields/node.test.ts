import { setImmediate } from 'node:timers/promises';
import { execute, parse, printSchema } from 'graphql';
import { expect, test } from 'vitest';
import { tenant, type Viewer } from '../../../src/access.ts';
import { defineProjection, t } from '../../../src/index.ts';
import { createGuard } from '../../../src/schema/access/guard.ts';
import { restrictReads } from '../../../src/schema/access/restricted-reads.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { breakingChanges } from '../analysis/breaking-changes.ts';
import { active, building, InMemoryServices, versionMap } from '../in-memory-services.ts';
import { courierDayV1, parcel, parcelRow, parcelV1, parcelV2 } from '../parcels.ts';
import { next, schemaUnderTest } from '../schema-under-test.ts';

const idOf = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url');
const shipped = { type: 'ParcelShipped', payload: { courier: 'Ada', at: '2026-02-01T08:00:00Z' } };

async function twoKinds() {
  const under = schemaUnderTest();
  await under.pack({ a: { weight: '1' }, b: { weight: '2' } });
  await under.services.append(parcel, 'a', shipped);
  const { parcels, courierDays } = (await under.answer(
    '{ parcels { nodes { id parcelId } } courierDays { nodes { id } } }',
  )) as Record<string, { nodes: { id: string }[] }>; // as asked
  const [a, b] = parcels?.nodes.map(({ id }) => id) ?? [];
  const day = courierDays?.nodes[0]?.id;
  under.services.reads.length = 0;
  return { ...under, ids: { a, b, day } };
}

test("a row's id finds it again, for every type", async () => {
  const { answer, ids } = await twoKinds();
  const source = `query ($id: ID!) {
    node(id: $id) { __typename id ... on Parcel { parcelId weight } ... on CourierDay { courier parcels } }
  }`;
  expect(await answer(source, { id: ids.b })).toEqual({
    node: { __typename: 'Parcel', id: ids.b, parcelId: 'b', weight: '2.000' },
  });
  expect(await answer(source, { id: ids.day })).toEqual({
    node: { __typename: 'CourierDay', id: ids.day, courier: 'Ada', parcels: 1 },
  });
  expect(await answer(source, { id: idOf(1, 'parcel', 'gone') })).toEqual({ node: null });
});

test('several rows come in the order of their ids, with null for a missing row, by one read per type', async () => {
  const { answer, services, ids } = await twoKinds();
  const gone = idOf(1, 'parcel', 'gone');
  const source =
    'query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on Parcel { weight } ... on CourierDay { parcels } } }';
  expect(await answer(source, { ids: [ids.b, gone, ids.day, ids.a, ids.b] })).toEqual({
    nodes: [
      { id: ids.b, weight: '2.000' },
      null,
      { id: ids.day, parcels: 1 },
      { id: ids.a, weight: '1.000' },
      { id: ids.b, weight: '2.000' },
    ],
  });
  // Columns selected of one type are not read of the other.
  expect(services.reads).toEqual([
    { kind: 'findByKeys', version: 'parcel@1', columns: ['parcelId', 'weight'] },
    { kind: 'findByKeys', version: 'courier_day@1', columns: ['courier', 'day', 'hub', 'lane', 'parcels'] },
  ]);
  expect(await answer('{ nodes(ids: []) { id } }')).toEqual({ nodes: [] });
});

test.each([
  ['no base64url', 'a b'],
  ['no JSON', Buffer.from('parcel:a').toString('base64url')],
  ['no list', Buffer.from('{}').toString('base64url')],
  ['of another format', idOf(2, 'parcel', 'a')],
  ['of no projection here', idOf(1, 'pg_class', 'a')],
  ['without a key', idOf(1, 'parcel')],
  ['with too long a key', idOf(1, 'parcel', 'a', 'b')],
  ['with a value that the key never has', idOf(1, 'courier_day', 'Ada', '2026-02-30', 'North', 1)],
  ['with a value of another type', idOf(1, 'parcel', 7)],
  ['with another spelling', Buffer.from('[1, "parcel", "a"]').toString('base64url')],
  ['of a prototype', idOf(1, '__proto__', 'a')],
  ['a long one', 'x'.repeat(10_000)],
])('an id that is %s is bad input', async (_, id) => {
  const { run } = await twoKinds();
  const { data, errors } = await run('query ($id: ID!) { node(id: $id) { id } }', { id });
  expect(data).toEqual({ node: null });
  expect(errors?.[0]?.message).toMatch(/is not the id of a row\. Use the value of a row's field 'id'\.$/);
  expect(errors?.[0]?.message.length).toBeLessThan(200);
});

test('more ids than one statement accepts are bad input', async () => {
  const { run } = await twoKinds();
  const { errors } = await run('query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids: new Array(1001).fill('x') });
  expect(errors?.[0]?.message).toBe("'ids' names 1001 rows; the limit is 1000.");
});

test('ids survive an activation: they name the projection without a version', async () => {
  const { ids } = await twoKinds();
  const later = schemaUnderTest([active(parcelV2)]);
  await later.pack({ b: { weight: '12' } });
  expect(
    await later.answer('query ($id: ID!) { node(id: $id) { id ... on Parcel { heavy } } }', { id: ids.b }),
  ).toEqual({
    node: { id: ids.b, heavy: true },
  });
});

test('payloads and subscriptions have ids too, of rows that left a list as well', async () => {
  const { answer, subscribe, services } = schemaUnderTest();
  const id = idOf(1, 'parcel', 'p');
  expect(await answer('mutation { packParcel(input: { parcelId: "p" }) { parcel { id } } }')).toEqual({
    packParcel: { parcel: { id } },
  });
  const row = await subscribe('subscription { parcel(parcelId: "p") { id } }');
  expect(await next(row)).toEqual({ parcel: { id } });
  const list = await subscribe(
    'subscription { parcels(where: { fragile: { eq: false } }) { snapshot { id } left { id } } }',
  );
  expect(await next(list)).toEqual({ parcels: { snapshot: [{ id }], left: [] } });
  await services.append(parcel, 'p', { type: 'ParcelForgotten', payload: {} });
  expect(await next(list)).toEqual({ parcels: { snapshot: null, left: [{ id }] } });
  await row.return(undefined);
  await list.return(undefined);
});

test('all selected types wait for a demanded position before any is read', async () => {
  const { run, services, ids } = await twoKinds();
  services.hold(courierDayV1);
  await services.append(parcel, 'b', shipped);
  const answered = run(
    `query ($a: ID!, $day: ID!, $after: Position!) @after(position: $after) {
      a: node(id: $a) { ... on Parcel { status } }
      day: node(id: $day) { ... on CourierDay { parcels } }
    }`,
    { a: ids.b, day: ids.day, after: String(services.head) },
  );
  await setImmediate(); // every read that does not wait has finished
  expect(services.reads.filter(({ kind }) => kind !== 'waitFor')).toEqual([]);
  services.release(courierDayV1);
  expect(await answered).toEqual({ data: { a: { status: 'Shipped' }, day: { parcels: 2 } } });
});

test('a version that is not active is an error', async () => {
  const { run } = schemaUnderTest([building(parcelV1)]);
  const { errors } = await run('query ($id: ID!) { node(id: $id) { id } }', { id: idOf(1, 'parcel', 'a') });
  expect(errors?.[0]?.message).toContain('not active yet');
});

const owned = (name: string, columns: 'refused' | 'allowed') =>
  defineProjection({
    name,
    version: 1,
    events: parcel,
    table: { key: t.text().primaryKey(), owner: t.text().index(), secret: t.text() },
    access: {
      ...tenant('owner'),
      ...(columns === 'refused' ? { columns: { secret: () => false } } : {}),
    },
    key: (event) => event.streamId,
    evolve: { ParcelPacked: (_, { payload }) => ({ owner: payload.row.note ?? '', secret: 'of rows' }) },
  });

test('a row that a viewer may not read is not found by its id, and columns are checked per type', async () => {
  const served = [active(owned('open_box', 'allowed')), active(owned('closed_box', 'refused'))];
  const services = new InMemoryServices(served);
  for (const [id, note] of Object.entries({ mine: 'acme', theirs: 'rival' }))
    await services.append(parcel, id, { type: 'ParcelPacked', payload: { row: parcelRow({ note }) } });
  const schema = buildSchema({ versions: versionMap(served), commands: [], maxPageSize: 50 });
  const viewer: Viewer = { id: 'ada', tenant: 'acme', roles: [], claims: {}, expiresAt: null };
  const run = async (source: string) => {
    const context = services.context();
    const guard = createGuard(viewer, 'authenticated');
    const contextValue = { ...context, viewer, readModels: restrictReads(context.readModels, guard) };
    return JSON.parse(JSON.stringify(await execute({ schema, document: parse(source), contextValue })));
  };
  const ids = (name: string) => ['mine', 'theirs'].map((key) => `"${idOf(1, name, key)}"`).join(' ');
  expect(
    await run(
      `{ nodes(ids: [${ids('open_box')} ${ids('closed_box')}]) { ... on OpenBox { secret } ... on ClosedBox { owner } } }`,
    ),
  ).toEqual({ data: { nodes: [{ secret: 'of rows' }, null, { owner: 'acme' }, null] } });
  const refused = await run(`{ nodes(ids: [${ids('closed_box')}]) { ... on ClosedBox { secret } } }`);
  expect(refused.errors[0].message).toBe("You may not read 'secret' of ClosedBox.");
});

const withId = (graphql?: { globalId: boolean }) =>
  defineProjection({
    name: 'box',
    version: 2,
    events: parcel,
    table: { id: t.text().primaryKey() },
    key: (event) => event.streamId,
    evolve: { ParcelPacked: () => ({}) },
    ...(graphql ? { graphql } : {}),
  });

test('a table with a column of that name keeps it, and its rows are no nodes', () => {
  const sdl = printSchema(buildSchema({ versions: versionMap([active(withId())]), commands: [], maxPageSize: 50 }));
  expect(sdl).toContain('type Box {\n  """Id: an id. The key of the row."""\n  id: ID!\n}');
  expect(sdl).not.toContain('Node');
  expect(() => withId({ globalId: true })).toThrow(
    "box@2: graphql.globalId adds a field 'id', but a column or relation has that name. Rename it, such as 'boxId', or leave globalId out.",
  );
});

test('a projection can omit global ids; a version that removes them breaks its clients', () => {
  const box = (version: number, globalId: boolean) =>
    defineProjection({
      name: 'box',
      version,
      events: parcel,
      table: { boxId: t.text().primaryKey() },
      graphql: { globalId },
      key: (event) => event.streamId,
      evolve: { ParcelPacked: () => ({}) },
    });
  const options = { projections: [box(1, true), box(2, false)], commands: [], maxPageSize: 50 };
  expect(breakingChanges(box(1, true), box(2, false), options)).toContain('Box.id was removed.');
  expect(breakingChanges(box(1, false), box(2, true), options)).toEqual([]);
});
