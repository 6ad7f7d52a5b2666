import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type Command,
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  defineState,
  type Projection,
  t,
} from '../../src/index.ts';
import { checkSchema } from '../../src/schema/check-schema.ts';
import { extendSchema } from '../../src/schema/extend-schema.ts';
import { allCommands, courierDayV1, parcelV1, parcelV2 } from './parcels.ts';

const thing = defineEvents('thing', { Done: z.object({}) });

function projection(name: string, options: { version?: number; table?: object; graphql?: object } = {}) {
  const { version = 1, table = {}, graphql } = options;
  return defineProjection({
    name,
    version,
    events: thing,
    table: { id: t.text().primaryKey(), ...table },
    key: (event) => event.streamId,
    evolve: { Done: () => null },
    ...(graphql ? { graphql } : {}),
  });
}

function command(name: string) {
  return defineCommand({
    name,
    input: z.object({ id: z.string(), mode: z.enum(['Fast']) }),
    state: defineState(thing, () => ({}), {}),
    stream: ({ id }) => id,
    decide: () => [],
  });
}

const check = (projections: readonly Projection[], commands: readonly Command[] = []) =>
  checkSchema({ ...defineConfig({}), projections, commands });

test('declarations that fit together pass, in all their versions', () => {
  expect(() => check([parcelV1, parcelV2, courierDayV1], allCommands)).not.toThrow();
});

describe('colliding names are refused, with both owners:', () => {
  test.each([
    [
      'the type of a projection with one of the schema',
      [projection('query')],
      [],
      "query@1: the GraphQL type name 'Query' belongs to Refold already.",
    ],
    [
      'the type of a projection with a scalar',
      [projection('date')],
      [],
      "date@1: the GraphQL type name 'Date' belongs to Refold already.",
    ],
    [
      'a column with another projection',
      [projection('cart', { table: { status: t.enum(['A']) } }), projection('cart_status')],
      [],
      "cart_status@1: the GraphQL type name 'CartStatus' belongs to cart@1, column 'status' already.",
    ],
    [
      'a connection with another projection',
      [projection('cart'), projection('cart_connection')],
      [],
      "cart_connection@1: the GraphQL type name 'CartConnection' belongs to cart@1 already.",
    ],
    [
      'a filter with a filter that Refold has',
      [projection('string')],
      [],
      "string@1: the GraphQL type name 'String' belongs to Refold already.",
    ],
    [
      'a column with a word of filters',
      [projection('cart', { table: { not: t.boolean().index() } })],
      [],
      "cart@1, column 'not': the GraphQL field 'CartFilter.not' belongs to Refold already.",
    ],
    [
      'a projection with the fields of a payload',
      [projection('position')],
      [command('move')],
      "position@1: the GraphQL type name 'Position' belongs to Refold already.",
    ],
    [
      'a row with the fields of a payload',
      [projection('stream', { graphql: { single: 'streamId' } })],
      [command('move')],
      "defineCommand('move') with stream@1: the GraphQL field 'MovePayload.streamId' belongs to Refold already.",
    ],
    [
      'the payload of a command with a projection',
      [projection('move_payload')],
      [command('move')],
      "defineCommand('move'): the GraphQL type name 'MovePayload' belongs to move_payload@1 already.",
    ],
    [
      'the enum of an input with a projection',
      [projection('move_mode')],
      [command('move')],
      "defineCommand('move'), input 'mode': the GraphQL type name 'MoveMode' belongs to move_mode@1 already.",
    ],
  ])('%s', (_, projections, commands, message) => {
    expect(() => check(projections, commands)).toThrow(message);
  });

  test('two filters of one name', () => {
    expect(() => check([projection('nullable_int')])).toThrow(
      "nullable_int@1: the GraphQL type name 'NullableIntFilter' belongs to Refold already.",
    );
  });

  test('the field of a list with the single field of another projection', () => {
    expect(() => check([projection('cart'), projection('basket', { graphql: { single: 'carts' } })])).toThrow(
      "basket@1: the GraphQL field 'Query.carts' belongs to cart@1 already.",
    );
  });

  test('a version that is not served yet', () => {
    const next = projection('cart', { version: 2, table: { status: t.enum(['A']) } });
    const later = projection('cart', { version: 3 });
    expect(() => check([projection('cart'), next, later, projection('cart_status')])).toThrow(
      "the GraphQL type name 'CartStatus' belongs to cart@2, column 'status' already.",
    );
  });
});

describe('of two versions each of many projections', () => {
  const older = Array.from({ length: 40 }, (_, index) => projection(`many_${index}`));
  const newer = older.map(({ name }) => projection(name, { version: 2 }));

  test('some twenty schemas are built, not one for each', () => {
    let builds = 0;
    const schema = extendSchema(() => void builds++);
    checkSchema(defineConfig({ projections: [...older, ...newer], schema }));
    expect(builds).toBeLessThan(20);
  });

  test.each([
    [0, 1],
    [17, 39],
    [39, 17],
  ])('a name that an older version of %i shares with the newest one of %i is found', (one, other) => {
    const type = 'Shared';
    const projections = [
      ...older.map((before, index) => (index === one ? projection(before.name, { graphql: { type } }) : before)),
      ...newer.map((after, index) =>
        index === other ? projection(after.name, { version: 2, graphql: { type } }) : after,
      ),
    ];
    expect(() => checkSchema(defineConfig({ projections }))).toThrow(type);
  });
});
