import { GraphQLScalarType } from 'graphql';
import { expect, test } from 'vitest';
import { declaredScalars } from '../../src/cli/setup/declared-schema.ts';
import { defineConfig, extendSchema } from '../../src/index.ts';
import { allCommands, courierDayV1, parcelV1 } from '../schema/parcels.ts';

test("the scalars of the schema are listed with their TypeScript types, an application's own included", () => {
  const money = new GraphQLScalarType({ name: 'Money', extensions: { codegenScalarType: '"EUR" | number' } });
  const config = defineConfig({
    projections: [parcelV1, courierDayV1],
    commands: allCommands,
    schema: extendSchema(({ builder }) => {
      builder.addScalarType('Money' as never, money as never); // a builder knows only its own scalars
      builder.addScalarType('Colour' as never, new GraphQLScalarType({ name: 'Colour' }) as never);
      for (const name of ['Money', 'Colour'])
        builder.queryField(`any${name}`, (t) => t.field({ type: name as never, resolve: () => null as never }));
    }),
  });
  expect(JSON.parse(declaredScalars(config))).toEqual({
    BigInt: 'string',
    Colour: 'unknown',
    Date: 'string',
    DateTime: 'string',
    Decimal: 'string',
    JSON: 'unknown',
    Money: '"EUR" | number',
    Position: 'string',
    UUID: 'string',
  });
});
