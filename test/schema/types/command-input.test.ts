import { type GraphQLInputType, type GraphQLSchema, graphql, isInputObjectType, printType } from 'graphql';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { CommandRejected, defineCommand, defineEvents, defineState } from '../../../src/index.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { versionMap } from '../in-memory-services.ts';

const thing = defineEvents('thing', { Done: z.object({}) });
const state = defineState(thing, () => ({}), {});

type Input = Parameters<typeof defineCommand>[0]['input'];

/** `doThing`, and `doMore` with the second input. */
function schemaOf(...inputs: Input[]) {
  const commands = inputs.map((input, index) => commandOf(['doThing', 'doMore'][index] ?? 'other', input));
  return buildSchema({ versions: versionMap([]), commands, maxPageSize: 10 });
}

function commandOf(name: string, input: Input) {
  return defineCommand({
    name,
    input,
    state,
    stream: () => 'one',
    decide: () => {
      throw new CommandRejected('Never.');
    },
  });
}

function fieldTypes(schema: GraphQLSchema, name: string): Record<string, string> {
  const type = schema.getType(name);
  if (!isInputObjectType(type)) throw new Error(`no input type ${name}`);
  return Object.fromEntries(Object.values(type.getFields()).map(({ name, type }) => [name, String(type)]));
}

/** The type of a property `value` of a command's input. */
function typeOf(value: z.ZodType): string {
  const schema = schemaOf(z.object({ value }));
  const type = schema.getType('DoThingInput');
  if (!isInputObjectType(type)) throw new Error('no input type');
  return String(type.getFields().value?.type);
}

test.each<[string, z.ZodType, string]>([
  ['a string', z.string(), 'String!'],
  ['an optional string', z.string().optional(), 'String'],
  ['a nullable string', z.string().nullable(), 'String'],
  ['a string with a default', z.string().default('x'), 'String'],
  ['a time', z.iso.datetime(), 'DateTime!'],
  ['a day', z.iso.date(), 'Date!'],
  ['a UUID', z.uuid(), 'UUID!'],
  ['bytes', z.base64(), 'Base64!'],
  ['an address', z.email(), 'String!'],
  ['a whole number', z.int(), 'Int!'],
  ['a whole number of 32 bits', z.int32(), 'Int!'],
  ['a whole number between bounds', z.int().min(1).max(1000), 'Int!'],
  ['a positive whole number', z.int().positive(), 'Int!'],
  ['a whole number beyond 32 bits', z.int().max(10_000_000_000), 'SafeInt!'],
  ['a number', z.number(), 'Float!'],
  ['a truth', z.boolean(), 'Boolean!'],
  ['a list', z.array(z.string()), '[String!]!'],
  ['a list of what may be null', z.array(z.int().nullable()), '[Int]!'],
  ['a list of lists', z.array(z.array(z.boolean())).optional(), '[[Boolean!]!]'],
  ['an enum', z.enum(['Low', 'High']), 'DoThingValue!'],
  ['a literal', z.literal('Only'), 'DoThingValue!'],
  ['an enum whose values are no names', z.enum(['in-progress', 'done']), 'String!'],
  ['numbers to choose from', z.literal([1, 2]), 'Int!'],
  ['an object', z.object({ a: z.string() }), 'DoThingValueInput!'],
  ['a list of objects', z.array(z.object({ a: z.string() })), '[DoThingValueInput!]!'],
  ['two objects in one', z.object({ a: z.string() }).and(z.object({ b: z.string() })), 'DoThingValueInput!'],
  ['a record', z.record(z.string(), z.int()), 'JSON!'],
  ['anything', z.any(), 'JSON'],
  ['any JSON', z.json(), 'JSON'],
  ['one of several strings', z.union([z.email(), z.literal('nobody')]), 'String!'],
  ['one of several times', z.union([z.iso.date(), z.iso.datetime()]), 'String!'],
  ['a number or null', z.union([z.int(), z.number()]).nullable(), 'Float'],
])('%s', (_, value, expected) => {
  expect(typeOf(value)).toBe(expected);
});

test('nested objects are named after their path, and list items in the singular', () => {
  const schema = schemaOf(
    z.object({
      address: z.object({ street: z.object({ name: z.string() }) }),
      people: z.array(z.object({ name: z.string().describe('As in the passport.') })),
    }),
  );
  const names = Object.keys(schema.getTypeMap()).filter((name) => name.startsWith('DoThing'));
  expect(names.sort()).toEqual([
    'DoThingAddressInput',
    'DoThingAddressStreetInput',
    'DoThingInput',
    'DoThingPayload',
    'DoThingPersonInput',
  ]);
  expect(printType(schema.getType('DoThingPersonInput') as never)).toContain(
    '"""As in the passport."""\n  name: String!',
  );
});

describe('a type that a declaration names', () => {
  const size = z.enum(['Small', 'Large']).meta({ id: 'Size' });
  const item = z.object({ sku: z.string(), size }).meta({ id: 'LineItem' });

  test('is one type in all positions and commands', () => {
    const schema = schemaOf(
      z.object({ first: item, others: z.array(item), last: item.nullish().describe('Of the day.') }),
      z.object({ item, size: size.optional() }),
    );
    const typesOf = (name: string) => fieldTypes(schema, name);
    expect(typesOf('DoThingInput')).toEqual({
      first: 'LineItemInput!',
      others: '[LineItemInput!]!',
      last: 'LineItemInput',
    });
    expect(typesOf('DoMoreInput')).toEqual({ item: 'LineItemInput!', size: 'Size' });
    expect(typesOf('LineItemInput')).toEqual({ sku: 'String!', size: 'Size!' });
    expect(Object.keys(schema.getTypeMap()).filter((name) => /Line|Size/.test(name))).toEqual([
      'Size',
      'LineItemInput',
    ]);
  });

  test('may contain itself', () => {
    const folder = z
      .object({
        name: z.string(),
        get folders() {
          return z.array(folder).optional();
        },
      })
      .meta({ id: 'Folder' }) as z.ZodType;
    const schema = schemaOf(z.object({ folder }), z.object({ folder }));
    expect(printType(schema.getType('FolderInput') as never)).toContain('folders: [FolderInput!]');
  });

  test('is unique: two different ones are refused', () => {
    const other = z.object({ sku: z.int() }).meta({ id: 'OtherItem' });
    const same = z.object({ sku: z.string() }).meta({ id: 'OtherItem' });
    expect(() => schemaOf(z.object({ other }), z.object({ same }))).toThrow(
      "defineCommand('doMore'): its input has a schema with the id 'OtherItem', which differs from that of defineCommand('doThing'). Use one schema in both, or another id.",
    );
  });
});

test("a text with an id as its name, or as its schema's name, is an ID", () => {
  const accountId = z.string().meta({ id: 'AccountId' });
  const schema = schemaOf(
    z.object({ id: z.string(), cartIds: z.array(z.string()), from: accountId, uuidId: z.uuid(), paid: z.string() }),
  );
  expect(fieldTypes(schema, 'DoThingInput')).toEqual({
    id: 'ID!',
    cartIds: '[ID!]!',
    from: 'ID!',
    uuidId: 'UUID!',
    paid: 'String!',
  });
});

test('an input may contain itself', () => {
  const category = z.object({
    name: z.string(),
    get children(): z.ZodOptional<z.ZodArray<typeof category>> {
      return z.array(category).optional();
    },
  });
  const fields = (
    schemaOf(category).getType('DoThingInput') as never as { getFields(): Record<string, { type: GraphQLInputType }> }
  ).getFields();
  expect(String(fields.children?.type)).toBe('[DoThingInput!]');
});

test('an input that has only optional properties may be left out', () => {
  const [input] =
    schemaOf(z.object({ a: z.string().optional() }))
      .getMutationType()
      ?.getFields().doThing?.args ?? [];
  expect(String(input?.type)).toBe('DoThingInput');
});

test('an omitted nullable property is null for the validator, which requires it', async () => {
  const place = z.object({ city: z.string().nullable(), zip: z.string().nullish(), floor: z.int().optional() });
  const input = z.object({ note: z.string().nullable(), anything: z.json(), place, stops: z.array(place) });
  const schema = schemaOf(input);
  const taken: unknown[] = [];
  const execute = async (_: unknown, given: unknown) => {
    taken.push(input.parse(given));
    return { position: '1', events: [] };
  };
  const source = 'mutation { doThing(input: { place: {}, stops: [{ floor: null, city: "Oslo" }, {}] }) { position } }';
  const { errors } = await graphql({ schema, source, contextValue: { commands: { execute } } });
  expect(errors).toBeUndefined();
  expect(taken).toEqual([
    { note: null, anything: null, place: { city: null }, stops: [{ city: 'Oslo' }, { city: null }] },
  ]);
});

test.each([
  ['a bare word in an object', '{ a: [{ b: Word }] }', 'JSON expects texts in quotes'],
  ['a bare word in a list', '[Word]', 'JSON expects texts in quotes'],
  ['a number beyond all', '{ a: [1e400] }', 'value.a.0: is beyond what a number can hold'],
])('JSON is passed unchanged, or refused: %s', async (_, literal, problem) => {
  const schema = schemaOf(z.object({ value: z.json() }));
  const taken: unknown[] = [];
  const execute = async (_: unknown, given: unknown) => taken.push(given);
  const source = `mutation { doThing(input: { value: ${literal} }) { position } }`;
  const { errors = [] } = await graphql({ schema, source, contextValue: { commands: { execute } } });
  expect(String(errors[0]?.message)).toContain(problem);
  expect(taken).toEqual([]);
});

describe("an input that GraphQL can't express is refused with its path:", () => {
  test.each<[string, z.ZodType, string]>([
    [
      'a choice between objects',
      z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
      'a choice between objects or lists',
    ],
    ['a choice between types', z.union([z.string(), z.int()]), 'a choice between String and Int'],
    ['a tuple', z.tuple([z.string(), z.int()]), 'a tuple; use an object'],
    ['several types of values', z.literal(['a', 1]), 'values of several types'],
    ['a property without a GraphQL name', z.object({ 'a-b': z.string() }), 'a property with this name'],
  ])('%s', (_, value, problem) => {
    expect(() => typeOf(value)).toThrow(
      new RegExp(`^defineCommand\\('doThing'\\): GraphQL can't express 'value[^']*': it is ${problem}`),
    );
  });

  test('a type that JSON does not have', () => {
    expect(() => typeOf(z.bigint())).toThrow(
      /the input has a type that JSON can't hold \(.*BigInt.*\)\. Take it as a string/,
    );
    expect(() => typeOf(z.date())).toThrow(/the input has a type that JSON can't hold \(.*Date.*\)/);
  });

  test('an input that is not an object', () => {
    expect(() => schemaOf(z.string())).toThrow('the input is not an object; wrap it');
    expect(() => schemaOf(z.record(z.string(), z.string()))).toThrow('the input is not an object; wrap it');
  });

  test('a validator without JSON Schema', () => {
    const validator = {
      '~standard': { version: 1, vendor: 'homemade', validate: (value: unknown) => ({ value }) },
    } as const;
    expect(() => schemaOf(validator)).toThrow("the input's validator (homemade) gives no JSON Schema");
  });
});
