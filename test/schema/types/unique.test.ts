import { execute, parse } from 'graphql';
import { expect, test } from 'vitest';
import { tenant, type Viewer } from '../../../src/access.ts';
import { defineProjection, t } from '../../../src/index.ts';
import { createGuard } from '../../../src/schema/access/guard.ts';
import { restrictReads } from '../../../src/schema/access/restricted-reads.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { breakingChanges } from '../analysis/breaking-changes.ts';
import { active, InMemoryServices, versionMap } from '../in-memory-services.ts';
import { parcel, parcelRow, parcelV1, parcelV2 } from '../parcels.ts';
import { schemaUnderTest } from '../schema-under-test.ts';

const trackingId = '0189dd0a-97a5-7c3b-8a5e-9a6b8f6f0b11';
const source = 'query ($id: UUID!) { parcelByTrackingId(trackingId: $id) { parcelId weight } }';

test('a row is found by a unique column, in any spelling of its value; a missing row is null', async () => {
  const { answer, pack, services } = schemaUnderTest();
  await pack({ a: { trackingId }, b: { trackingId: trackingId.replace('1', '2') } });
  const found = { parcelByTrackingId: { parcelId: 'a', weight: '1.500' } };
  expect(await answer(source, { id: trackingId })).toEqual(found);
  expect(await answer(source, { id: trackingId.toUpperCase() })).toEqual(found);
  expect(await answer(source, { id: trackingId.replace('0', 'f') })).toEqual({ parcelByTrackingId: null });
  expect(services.reads[0]).toEqual({ kind: 'findByUnique', version: 'parcel@1', columns: ['parcelId', 'weight'] });
});

test('a value that no row can have is bad input', async () => {
  const { run } = schemaUnderTest();
  const { errors } = await run(source, { id: 'no-uuid' });
  expect(errors).toHaveLength(1);
  expect((await run('{ parcelByTrackingId { parcelId } }')).errors).toHaveLength(1);
});

test('a look-up waits for a demanded position', async () => {
  const { run, services, pack } = schemaUnderTest();
  services.hold(parcelV1);
  await pack({ a: { trackingId } });
  const answered = run(
    `query ($id: UUID!) @after(position: "${services.head}") { parcelByTrackingId(trackingId: $id) { parcelId } }`,
    { id: trackingId },
  );
  services.release(parcelV1);
  expect(await answered).toEqual({ data: { parcelByTrackingId: { parcelId: 'a' } } });
});

test('a version without the unique column breaks its clients', () => {
  const options = { projections: [parcelV1, parcelV2], commands: [], maxPageSize: 50 };
  expect(breakingChanges(parcelV1, parcelV2, options)).toContain('Query.parcelByTrackingId was removed.');
});

test('a value that is unique within another column is looked up by both, which breaks clients that pass one', async () => {
  const box = (version: number, within: { within?: string }) =>
    defineProjection({
      name: 'box',
      version,
      events: parcel,
      table: { boxId: t.text().primaryKey(), owner: t.text(), label: t.text().unique(within) },
      key: (event) => event.streamId,
      evolve: { ParcelPacked: (_, { payload }) => ({ owner: payload.row.note ?? '', label: 'x' }) },
    });
  const [plain, within] = [box(1, {}), box(2, { within: 'owner' })];
  expect(plain.tableFingerprint).not.toBe(within.tableFingerprint);
  const options = { projections: [plain, within], commands: [], maxPageSize: 50 };
  expect(breakingChanges(plain, within, options)).toEqual(['A required arg owner on Query.boxByLabel was added.']);
  const services = new InMemoryServices([active(within)]);
  for (const owner of ['ann', 'bob'])
    await services.append(parcel, owner, { type: 'ParcelPacked', payload: { row: parcelRow({ note: owner }) } });
  const schema = buildSchema({ versions: versionMap([active(within)]), commands: [], maxPageSize: 50 });
  const { data } = await execute({
    schema,
    document: parse(
      '{ bob: boxByLabel(label: "x", owner: "bob") { boxId } eve: boxByLabel(label: "x", owner: "eve") { boxId } }',
    ),
    contextValue: services.context(),
  });
  expect(JSON.parse(JSON.stringify(data))).toEqual({ bob: { boxId: 'bob' }, eve: null });
});

test('a row that a viewer may not read is not found', async () => {
  const box = defineProjection({
    name: 'box',
    version: 1,
    events: parcel,
    table: { boxId: t.text().primaryKey(), owner: t.text().index(), label: t.text().unique(), code: t.text().unique() },
    access: { ...tenant('owner'), columns: { code: () => false } },
    key: (event) => event.streamId,
    evolve: {
      ParcelPacked: (_, { streamId, payload }) => ({ owner: payload.row.note ?? '', label: streamId, code: streamId }),
    },
  });
  const services = new InMemoryServices([active(box)]);
  for (const [id, note] of Object.entries({ mine: 'acme', theirs: 'rival' }))
    await services.append(parcel, id, { type: 'ParcelPacked', payload: { row: parcelRow({ note }) } });
  const schema = buildSchema({ versions: versionMap([active(box)]), commands: [], maxPageSize: 50 });
  const viewer: Viewer = { id: 'ada', tenant: 'acme', roles: [], claims: {}, expiresAt: null };
  const run = async (document: string) => {
    const context = services.context();
    const readModels = restrictReads(context.readModels, createGuard(viewer, 'authenticated'));
    const contextValue = { ...context, viewer, readModels };
    return JSON.parse(JSON.stringify(await execute({ schema, document: parse(document), contextValue })));
  };
  expect(
    await run('{ mine: boxByLabel(label: "mine") { boxId } theirs: boxByLabel(label: "theirs") { boxId } }'),
  ).toEqual({ data: { mine: { boxId: 'mine' }, theirs: null } });
  // Finding a row by an unreadable column would reveal its value.
  expect((await run('{ boxByCode(code: "mine") { boxId } }')).errors[0].message).toBe(
    "You may not read 'code' of Box.",
  );
});
