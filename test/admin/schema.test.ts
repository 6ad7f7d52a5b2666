import { readFileSync } from 'node:fs';
import { buildSchema, isEnumType, printSchema } from 'graphql';
import { expect, test } from 'vitest';
import { adminSchema } from '../../src/admin/create-admin-schema.ts';
import { adminRights } from '../../src/config/admin-options.ts';
import { healths } from '../../src/runtime/inspection/health.ts';

const written = readFileSync('docs/admin-schema.graphql', 'utf8');

test('the schema that answers is the one that the docs show', () => {
  expect(printSchema(adminSchema())).toBe(printSchema(buildSchema(written)));
});

test('the values of enums are those of the runtime', () => {
  const valuesOf = (name: string) => {
    const type = adminSchema().getType(name);
    return isEnumType(type) ? type.getValues().map(({ value }) => value) : [];
  };
  expect(valuesOf('Health')).toEqual(healths);
  expect(valuesOf('Right')).toEqual(adminRights);
  expect(valuesOf('StepOutcome')).toEqual(['folded', 'ignored', 'failed', 'leftOut']);
});
