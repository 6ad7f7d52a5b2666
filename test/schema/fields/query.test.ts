import { expect, test } from 'vitest';
import { active, building } from '../in-memory-services.ts';
import { courierDayV1, parcel, parcelV1 } from '../parcels.ts';
import { schemaUnderTest } from '../schema-under-test.ts';

test('a row has every kind of value in its exact form', async () => {
  const { answer, pack } = schemaUnderTest();
  await pack({
    a: {
      weight: '1234567.5',
      grams: '9007199254740993',
      insuredFor: '0',
      prices: ['1.5', '20'],
    },
  });
  const { parcel } = await answer(`{
    parcel(parcelId: "a") {
      __typename parcelId trackingId status weight grams pieces fragile packedOn shippedAt courier insuredFor note
      remarks prices size { width label { text printedAt } } items { sku quantity price } grid extra
    }
  }`);
  expect(parcel).toEqual({
    __typename: 'Parcel',
    parcelId: 'a',
    trackingId: '0189dd0a-97a5-7c3b-8a5e-9a6b8f6f0b11',
    status: 'Packed',
    weight: '1234567.500',
    grams: '9007199254740993',
    pieces: 2,
    fragile: false,
    packedOn: '2026-01-31',
    shippedAt: null,
    courier: null,
    insuredFor: '0.00',
    note: null,
    remarks: ['handle with care'],
    prices: ['1.50', '20.00'],
    size: { width: 30, label: { text: 'To Ada', printedAt: '2026-01-31T12:00:00.123456Z' } },
    items: [{ sku: 'mug', quantity: 2, price: '7.50' }],
    grid: [[1, null], []],
    extra: { anything: [1, 'two'] },
  });
});

test('a missing row is null', async () => {
  const { answer } = schemaUnderTest();
  expect(await answer('{ parcel(parcelId: "nobody") { parcelId } }')).toEqual({ parcel: null });
});

test('a composite key has an argument for each of its columns', async () => {
  const { answer, pack, services } = schemaUnderTest();
  await pack({ a: {} });
  await services.append(parcel, 'a', {
    type: 'ParcelShipped',
    payload: { courier: 'Ada', at: '2026-02-01T08:00:00Z' },
  });
  expect(
    await answer(
      `{ courierDay(courier: "Ada", day: "2026-02-01", hub: North, lane: 1) { courier day hub lane parcels } }`,
    ),
  ).toEqual({ courierDay: { courier: 'Ada', day: '2026-02-01', hub: 'North', lane: 1, parcels: 1 } });
});

test('only selected columns are read: through aliases, fragments and directives', async () => {
  const { answer, services } = schemaUnderTest();
  await answer(
    `query ($yes: Boolean!, $no: Boolean!) {
      first: parcel(parcelId: "a") { one: weight two: weight ...Size ... on Parcel { pieces } ... @include(if: $no) { note } }
      second: parcel(parcelId: "b") { fragile @skip(if: $yes) grams @include(if: $yes) __typename }
    }
    fragment Size on Parcel { size { width } ...Items }
    fragment Items on Parcel { items { sku } }`,
    { yes: true, no: false },
  );
  expect(services.reads).toEqual([
    { kind: 'findByKeys', version: 'parcel@1', columns: ['weight', 'pieces', 'size', 'items'] },
    { kind: 'findByKeys', version: 'parcel@1', columns: ['grams'] },
  ]);
});

test('the same document with other variables selects other columns', async () => {
  const { run, services } = schemaUnderTest();
  const document = 'query ($more: Boolean!) { parcel(parcelId: "a") { weight pieces @include(if: $more) } }';
  for (const more of [true, false, true]) await run(document, { more });
  expect(services.reads.map((read) => read.columns)).toEqual([['weight', 'pieces'], ['weight'], ['weight', 'pieces']]);
});

test('fields selected twice are read once', async () => {
  const { answer, services } = schemaUnderTest();
  await answer('{ parcel(parcelId: "a") { weight } parcel(parcelId: "a") { pieces } }');
  expect(services.reads.map((read) => read.columns)).toEqual([['weight', 'pieces']]);
});

test('the error of a version that is not active has its progress', async () => {
  const { run, pack, services } = schemaUnderTest([building(parcelV1)]);
  await pack({ a: {} });
  services.hold(parcelV1);
  await pack({ b: {}, c: {}, d: {} });
  for (const field of ['parcel(parcelId: "a") { weight }', 'parcels { totalCount }']) {
    const { data, errors } = await run(`{ ${field} }`);
    expect(errors?.[0]?.message).toBe(
      'parcel@1 is building and not active yet: 25 % done, at position 1 of 4. Ask again later.',
    );
    expect(data ?? {}).not.toHaveProperty('parcels');
  }
});

test('_meta has the served versions and their progress', async () => {
  const { answer, pack, services } = schemaUnderTest([active(parcelV1), building(courierDayV1)]);
  await pack({ a: {} });
  services.hold(courierDayV1);
  await pack({ b: {} });
  const fields = 'name version state position head lag progress paused';
  expect(await answer(`{ _meta { projections { ${fields} } } }`)).toEqual({
    _meta: {
      projections: [
        { name: 'parcel', version: 1, state: 'ACTIVE', position: '2', head: '2', lag: '0', progress: 1, paused: false },
        {
          name: 'courier_day',
          version: 1,
          state: 'BUILDING',
          position: '1',
          head: '2',
          lag: '1',
          progress: 0.5,
          paused: false,
        },
      ],
    },
  });
  expect(await answer('{ _meta { projections(name: "parcel") { name } } }')).toEqual({
    _meta: { projections: [{ name: 'parcel' }] },
  });
});

test('a query waits for the position that it demands', async () => {
  const { answer, pack, services } = schemaUnderTest();
  await pack({ a: {} });
  services.hold(parcelV1);
  await pack({ b: {} });
  const document = `query ($after: Position) @after(position: $after) { parcels { nodes { parcelId } } }`;
  expect(await answer(document, { after: null })).toEqual({ parcels: { nodes: [{ parcelId: 'a' }] } });
  const waiting = answer(document, { after: '2' });
  services.release(parcelV1);
  expect(await waiting).toEqual({ parcels: { nodes: [{ parcelId: 'a' }, { parcelId: 'b' }] } });
});

test('a position can be demanded as a literal, too', async () => {
  const { answer, pack, services } = schemaUnderTest();
  await pack({ a: {} });
  await answer('query @after(position: "1") { parcel(parcelId: "a") { weight } }');
  expect(services.reads[0]).toEqual({ kind: 'waitFor', version: 'parcel@1', position: 1n });
});

test('the default of a variable demands its position, unless the client sends another value', async () => {
  const { answer, pack, services } = schemaUnderTest();
  await pack({ a: {} });
  const document = 'query ($after: Position = "1") @after(position: $after) { parcel(parcelId: "a") { weight } }';
  await answer(document, { after: null });
  expect(services.reads.filter(({ kind }) => kind === 'waitFor')).toEqual([]);
  await answer(document);
  expect(services.reads).toContainEqual({ kind: 'waitFor', version: 'parcel@1', position: 1n });
});

test('a position that the log never had is a distinct error', async () => {
  const { run } = schemaUnderTest();
  const { errors } = await run('query @after(position: "99") { parcel(parcelId: "a") { weight } }');
  expect(errors?.[0]?.message).toBe('parcel@1 did not reach 99.');
});

test('fragments that spread others twice do not multiply', async () => {
  const { answer, services } = schemaUnderTest();
  const levels = Array.from(
    { length: 60 },
    (_, level) => `fragment F${level} on Parcel { ...F${level + 1} ... { ...F${level + 1} } }`,
  );
  await answer(
    `{ parcels { nodes { ...F0 } edges { node { ...F0 } } } } ${levels.join(' ')} fragment F60 on Parcel { weight }`,
  );
  expect(services.reads).toEqual([{ kind: 'findPage', version: 'parcel@1', columns: ['weight'] }]);
});

test('no part of an operation reads before all of its versions have the demanded position', async () => {
  const { answer, pack, services } = schemaUnderTest();
  await pack({ a: {} });
  services.hold(courierDayV1);
  await services.append(parcel, 'a', {
    type: 'ParcelShipped',
    payload: { courier: 'Ada', at: '2026-02-01T08:00:00Z' },
  });
  const waiting = answer(`query @after(position: "2") {
    first: parcel(parcelId: "a") { status } second: parcel(parcelId: "b") { status } courierDays { totalCount }
  }`);
  await expect.poll(() => services.reads.filter((read) => read.kind === 'waitFor').length).toBe(2);
  expect(services.reads.map((read) => read.kind)).toEqual(['waitFor', 'waitFor']);
  services.release(courierDayV1);
  expect(await waiting).toEqual({ first: { status: 'Shipped' }, second: null, courierDays: { totalCount: 1 } });
});

test('a version that does not reach the position fails its own field only', async () => {
  const { run, services } = schemaUnderTest();
  const waitFor = services.openReadModels.bind(services);
  services.openReadModels = (options) => ({
    ...waitFor(options),
    waitFor: async (projection) => {
      if (projection === courierDayV1) throw new Error('too late');
    },
  });
  const { data, errors } = await run(
    'query @after(position: "0") { parcel(parcelId: "a") { status } courierDay(courier: "a", day: "2026-01-01", hub: North, lane: 1) { day } }',
  );
  expect(data).toEqual({ parcel: null, courierDay: null });
  expect(errors?.map(({ path }) => path)).toEqual([['courierDay']]);
});
