import { execute, parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import { defineConfig, defineProjection, extendSchema, type SchemaExtension, t } from '../../src/index.ts';
import { buildSchema } from '../../src/schema/build-schema.ts';
import { active, InMemoryServices, versionMap } from './in-memory-services.ts';
import { allCommands, parcel, parcelRow, parcelV1, parcelV2 } from './parcels.ts';

const heavier = extendSchema(({ builder, rowType, rowField }) => {
  rowField('parcel', 'label', ['weight', 'pieces'], (t) =>
    t.string({
      args: { unit: t.arg.string({ required: true }) },
      resolve: (row, { unit }) => `${row.pieces} × ${row.weight} ${unit}`,
    }),
  );
  builder.queryField('heaviest', (t) =>
    t.field({
      type: rowType('parcel'),
      nullable: true,
      async resolve(_, __, { readModels, versions }) {
        const projection = versions.served.get('parcel')?.projection ?? parcelV1;
        const { rows } = await readModels.findPage(projection, {
          where: null,
          orderBy: [{ column: 'weight', direction: 'desc', nulls: 'last' }],
          columns: Object.keys(projection.columns),
          direction: 'forward',
          limit: 1,
          after: null,
          before: null,
        });
        return rows[0];
      },
    }),
  );
  const greeting = builder.objectRef<{ readonly words: string }>('Greeting').implement({
    fields: (t) => ({ words: t.exposeString('words') }),
  });
  builder.mutationField('greet', (t) =>
    t.field({ type: greeting, resolve: (_, __, { viewer }) => ({ words: `Hello, ${viewer}` }) }),
  );
});

async function answer(extension: SchemaExtension, source: string, served = [active(parcelV1)]) {
  const services = new InMemoryServices(served);
  await services.append(parcel, 'a', { type: 'ParcelPacked', payload: { row: parcelRow({ weight: '1', pieces: 3 }) } });
  await services.append(parcel, 'b', { type: 'ParcelPacked', payload: { row: parcelRow({ weight: '2', pieces: 4 }) } });
  const schema = buildSchema({ versions: versionMap(served), commands: allCommands, maxPageSize: 50, extension });
  const document = parse(source);
  expect(validate(schema, document)).toEqual([]);
  const result = await execute({ schema, document, contextValue: services.context() });
  return { ...(JSON.parse(JSON.stringify(result)) as { data?: unknown; errors?: unknown }), reads: services.reads };
}

test('an application adds types, queries, mutations and fields of rows with the same builder', async () => {
  const { data } = await answer(heavier, '{ heaviest { parcelId label(unit: "kg") } }');
  expect(data).toEqual({ heaviest: { parcelId: 'b', label: '4 × 2 kg' } });
  expect((await answer(heavier, 'mutation { greet { words } }')).data).toEqual({ greet: { words: 'Hello, system' } });
});

test('a field of a row reads bytes as `evolve` does, and a read model as they are stored', async () => {
  const sealed = defineProjection({
    name: 'sealed',
    version: 1,
    events: parcel,
    table: { parcelId: t.text().primaryKey(), seal: t.bytes() },
    key: ({ streamId }) => streamId,
    evolve: { ParcelPacked: () => ({ seal: new Uint8Array([104, 105]) }) },
  });
  const extension = extendSchema(({ builder, rowField }) => {
    rowField('sealed', 'length', ['seal'], (t) => t.int({ resolve: (row) => (row.seal as Uint8Array).length }));
    builder.queryField('stored', (t) =>
      t.stringList({
        async resolve(_, __, { readModels }) {
          const [row] = await readModels.findByKeys(sealed, [['a']], ['seal']);
          return row ? [String(row.seal), String(sealed.codec.forEvolve(row).seal)] : [];
        },
      }),
    );
  });
  const { data } = await answer(extension, '{ sealed(parcelId: "a") { seal length } stored }', [active(sealed)]);
  expect(data).toEqual({ sealed: { seal: 'aGk=', length: 2 }, stored: ['\\x6869', '104,105'] });
});

test('a field of a row reads its columns, and no others', async () => {
  const { data, reads } = await answer(
    heavier,
    '{ parcel(parcelId: "a") { label(unit: "kg") } parcels { nodes { label(unit: "lb") } } }',
  );
  expect(data).toMatchObject({
    parcel: { label: '3 × 1 kg' },
    parcels: { nodes: [{ label: '3 × 1 lb' }, { label: '4 × 2 lb' }] },
  });
  expect(reads.map(({ columns }) => columns)).toEqual([
    ['weight', 'pieces'],
    ['weight', 'pieces'],
  ]);
});

test('the same additions are made to the schema of another version', async () => {
  const { data } = await answer(heavier, '{ parcel(parcelId: "a") { label(unit: "kg") heavy } }', [active(parcelV2)]);
  expect(data).toEqual({ parcel: { label: '3 × 1 kg', heavy: false } });
});

test.each([
  [
    'an unknown projection',
    extendSchema(({ rowType }) => void rowType('parcels')),
    "there is no projection 'parcels'. Did you mean 'parcel'?",
  ],
  [
    'an unknown column',
    extendSchema(({ rowField }) => rowField('parcel', 'x', ['wieght'], (t) => t.int({ resolve: () => 1 }))),
    "parcel@1 has no column 'wieght'. Did you mean 'weight'?",
  ],
  [
    'the name of a column',
    extendSchema(({ rowField }) => rowField('parcel', 'weight', [], (t) => t.int({ resolve: () => 1 }))),
    'has a column or relation of that name already',
  ],
])('an addition to %s is refused', (_, extension, problem) => {
  expect(() =>
    buildSchema({ versions: versionMap([active(parcelV1)]), commands: [], maxPageSize: 50, extension }),
  ).toThrow(problem);
});

test('an extension that extendSchema did not create is refused', () => {
  expect(() => defineConfig({ schema: {} as never })).toThrow(
    "'schema' holds something that extendSchema did not make.",
  );
});
