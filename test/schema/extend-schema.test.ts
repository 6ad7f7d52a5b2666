import { execute, parse, printSchema, validate } from 'graphql';
import { describe, expect, test } from 'vitest';
import {
  defineConfig,
  defineProjection,
  extendSchema,
  type SchemaExtension,
  type SchemaTools,
  t,
} from '../../src/index.ts';
import { buildSchema, type SchemaOptions } from '../../src/schema/build-schema.ts';
import { checkSchema } from '../../src/schema/check-schema.ts';
import { active, InMemoryServices, versionMap } from './in-memory-services.ts';
import { allCommands, parcel, parcelRow, parcelV1, parcelV2 } from './parcels.ts';

const heavier = extendSchema(({ builder, readModel, rowField }) => {
  const parcels = readModel('parcel');
  rowField('parcel', 'label', ['weight', 'pieces'], (t) =>
    t.string({
      args: { unit: t.arg.string({ required: true }) },
      resolve: (row, { unit }) => `${row.pieces} × ${row.weight} ${unit}`,
    }),
  );
  builder.queryField('heaviest', (t) =>
    t.field({
      type: parcels.rowType,
      nullable: true,
      async resolve(_, __, context, info) {
        const [heaviest = null] = await parcels.findRows({ orderBy: [{ weight: 'DESC' }], first: 1 }, context, info);
        return heaviest;
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
    extendSchema(({ readModel }) => void readModel('parcels')),
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
  expect(() => built(extension)).toThrow(problem);
});

function built(extension: SchemaExtension, options: Partial<SchemaOptions> = {}) {
  const versions = versionMap([active(parcelV1)]);
  return buildSchema({ versions, commands: allCommands, maxPageSize: 50, extension, ...options });
}

/** What the check at the start says. */
function checked(extension: SchemaExtension): string {
  try {
    checkSchema(defineConfig({ projections: [parcelV1], commands: allCommands, schema: extension }));
    return 'nothing';
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_DECLARATION' });
    return (error as Error).message;
  }
}

const int = { type: 'Int', resolve: () => 1 } as const;

describe('a mistake that Pothos or GraphQL finds says what to change:', () => {
  test.each<readonly [string, string, (tools: SchemaTools) => unknown]>([
    [
      'a type that a read model has',
      "it defines the type 'Parcel', which belongs to parcel@1 already. Rename yours.",
      ({ builder }) => builder.objectRef('Parcel').implement({ fields: (t) => ({ a: t.field(int) }) }),
    ],
    [
      'a type that the schema has',
      "it defines the type 'PageInfo', which belongs to Refold already. Rename yours.",
      ({ builder }) => builder.objectRef('PageInfo').implement({ fields: (t) => ({ a: t.field(int) }) }),
    ],
    [
      'a type of its own, twice',
      "it defines the type 'Greeting' twice. Rename one of them.",
      ({ builder }) => {
        for (const value of ['A', 'B']) builder.enumType('Greeting', { values: [value] });
      },
    ],
    [
      'the root type',
      "the type 'Query' is there already. Add to it with 'builder.queryField' instead.",
      ({ builder }) => {
        builder.objectRef('Query').implement({ fields: (t) => ({ a: t.field(int) }) });
      },
    ],
    [
      'a query that a read model has',
      "it adds the field 'Query.parcels', which belongs to parcel@1 already. Rename yours.",
      ({ builder }) => builder.queryField('parcels', (t) => t.field(int)),
    ],
    [
      'a mutation that a command has',
      "it adds the field 'Mutation.packParcel', which belongs to defineCommand('packParcel') already. Rename yours.",
      ({ builder }) => builder.mutationField('packParcel', (t) => t.field(int)),
    ],
    [
      'a query of its own, twice',
      "it adds the field 'Query.twice', which is there already. Rename one of them.",
      ({ builder }) => {
        for (const _ of ['A', 'B']) builder.queryField('twice', (t) => t.field(int));
      },
    ],
    [
      'a type that is not implemented',
      "'Greeting' is used, but not implemented. Call 'implement' of its ref",
      ({ builder }) =>
        builder.queryField('greet', (t) =>
          t.field({ type: builder.objectRef<object>('Greeting'), resolve: () => ({}) }),
        ),
    ],
    [
      'a type that does not exist',
      "'Greeting' is used, but not implemented.",
      ({ builder }) =>
        builder.queryField('greet', (t) => t.field({ type: 'Greeting' as never, resolve: () => null as never })),
    ],
    [
      'a type that is undefined',
      "the 'type' of a field is undefined, or something that is no type. A circular import is the usual cause",
      ({ builder }) => builder.objectType(undefined as never, {} as never),
    ],
    [
      'an input type as an output',
      'Pothos refuses it. Expected',
      ({ builder }) => {
        const input = builder.inputType('Wish', { fields: (t) => ({ what: t.string() }) });
        builder.queryField('wish', (t) => t.field({ type: input as never, resolve: () => null as never }));
      },
    ],
    [
      'a type without fields',
      'the schema is not valid. Type Empty must define one or more fields.',
      ({ builder }) => builder.objectRef('Empty').implement({ fields: () => ({}) }),
    ],
    [
      'a name that GraphQL does not have',
      'must only contain',
      ({ builder }) => builder.queryField('no-name', (t) => t.field(int)),
    ],
    [
      'an error of its own',
      'it failed: no price list',
      () => {
        throw new Error('no price list');
      },
    ],
    [
      'an access that does not exist',
      "extendSchema, field 'open': 'access' is 'public', 'authenticated' or a function. Did you mean 'public'?",
      ({ builder }) => builder.queryField('open', (t) => t.field({ ...int, access: 'publc' as never })),
    ],
    [
      'an access where it would protect nothing',
      "extendSchema, field 'heavy': 'access' is an option of queries, mutations and subscriptions, not of fields of Parcel.",
      ({ rowField }) => rowField('parcel', 'heavy', [], (t) => t.field({ ...int, access: 'authenticated' } as never)),
    ],
    [
      'an access rule without an authenticator',
      "extendSchema, field 'closed': it declares 'access', but there is no authenticator. Set 'auth', such as jwt({ … }).",
      ({ builder }) => builder.mutationField('closed', (t) => t.field({ ...int, access: 'authenticated' })),
    ],
  ])('%s', (_, message, extend) => {
    expect(checked(extendSchema((tools) => void extend(tools)))).toContain(message);
  });

  test('a plugin that was not imported', () => {
    expect(checked(extendSchema({ plugins: ['scopeAuth'] }, () => {}))).toBe(
      "extendSchema: there is no plugin 'scopeAuth'. Import its package. If you do, there may be two copies of @pothos/core: 'npm ls @pothos/core' shows them.",
    );
  });

  test.each([
    [
      { plugins: ['relay'] },
      "the plugin 'relay' defines types that the generated schema has already. Rows have an 'id'",
    ],
    [{ plugins: ['federation'] }, "Set 'gateway: { federation: true }'; read models are entities then."],
    [{ pluginOptions: { defaultFieldNullability: true } }, "'pluginOptions' can't set 'defaultFieldNullability'"],
    [{ plugin: ['scopeAuth'] }, "unknown option 'plugin' of extendSchema. Did you mean 'plugins'?"],
    [{ context: { clock: 1 } }, "'context' is a function of the operation that returns an object."],
  ])('options %j', (options, message) => {
    expect(() => extendSchema(options as object, () => {})).toThrow(message);
  });

  test('no function at all', () => {
    expect(() => extendSchema({} as never)).toThrow('extendSchema: it needs a function that adds to the schema.');
  });
});

test('mutations and subscriptions are added without any command or read model', () => {
  const extension = extendSchema(({ builder }) => {
    builder.mutationField('greet', (t) => t.field(int));
    builder.subscriptionField('greetings', (t) =>
      t.field({
        type: 'Int',
        async *subscribe() {
          yield 1;
        },
        resolve: (value) => value,
      }),
    );
  });
  const sdl = printSchema(built(extension, { versions: versionMap([]), commands: [] }));
  expect(sdl).toContain('greet: Int!');
  expect(sdl).toContain('greetings: Int!');
  const without = printSchema(
    built(
      extendSchema(() => {}),
      { versions: versionMap([]), commands: [] },
    ),
  );
  expect(without).not.toMatch(/type (Mutation|Subscription)/);
});

test('an asynchronous extension is refused', async () => {
  const extension = extendSchema(async ({ builder }) => {
    await Promise.reject(new Error('nobody waits for it'));
    builder.queryField('late', (t) => t.field(int));
  });
  expect(checked(extension)).toBe(
    'extendSchema: its function returned a promise. Await what it needs before the configuration is defined, and add everything synchronously.',
  );
});

describe('an extension that is not repeatable is refused at the start:', () => {
  const wayOut =
    'It is called for each schema, such as at an activation. Create everything inside of its function, and depend on nothing that changes.';

  test('a ref of another schema', () => {
    const create = ({ builder }: SchemaTools) =>
      builder.objectRef('Greeting').implement({ fields: (t) => ({ a: t.field(int) }) });
    let kept: ReturnType<typeof create> | undefined;
    const extension = extendSchema((tools) => {
      const { builder } = tools;
      const greeting = kept ?? create(tools);
      kept = greeting;
      builder.queryField('greet', (t) => t.field({ type: greeting, resolve: () => ({}) }));
    });
    expect(checked(extension)).toMatch(
      /^extendSchema: it worked, but not when it was called again: 'Greeting' is used, but not implemented\./,
    );
  });

  test('other fields each time', () => {
    let calls = 0;
    const extension = extendSchema(({ builder }) => {
      calls++;
      builder.queryField(`call${calls}`, (t) => t.field(int));
    });
    expect(checked(extension)).toBe(
      `extendSchema: it added something else when it was called again: Query.call1 was removed. ${wayOut}`,
    );
  });

  test('only the first time', () => {
    let done = false;
    const extension = extendSchema(({ builder }) => {
      if (!done) builder.queryField('once', (t) => t.field(int));
      done = true;
    });
    expect(checked(extension)).toContain('Query.once was removed.');
  });
});

test('an extension that extendSchema did not create is refused', () => {
  expect(() => defineConfig({ schema: {} as never })).toThrow(
    "'schema' holds something that extendSchema did not make.",
  );
});
