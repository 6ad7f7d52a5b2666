import { printSchema, validateSchema } from 'graphql';
import { expect, test } from 'vitest';
import { buildSchema } from '../../src/schema/build-schema.ts';
import { active, versionMap } from './in-memory-services.ts';
import { allCommands, courierDayV1, parcelV1, parcelV2 } from './parcels.ts';

const schemaOf = (...served: Parameters<typeof versionMap>[0]) =>
  buildSchema({ versions: versionMap(served), commands: allCommands, maxPageSize: 50 });

test('the schema of all kinds of columns and inputs matches its snapshot', async () => {
  const schema = schemaOf(active(parcelV1), active(courierDayV1));
  expect(validateSchema(schema)).toEqual([]);
  await expect(`${printSchema(schema)}\n`).toMatchFileSnapshot('parcels.generated.graphql');
});

test('another version of a projection changes the schema under the same names', () => {
  const schema = schemaOf(active(parcelV2));
  expect(printSchema(schema)).toContain('  Found\n');
  expect(schema.getType('ParcelItem')).toBeUndefined();
});

test('an application without projections and commands has a schema too', () => {
  const schema = buildSchema({ versions: versionMap([]), commands: [], maxPageSize: 50 });
  expect(validateSchema(schema)).toEqual([]);
  expect(schema.getMutationType()).toBeUndefined();
  expect(schema.getSubscriptionType()).toBeUndefined();
});
