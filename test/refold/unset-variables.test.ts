/** A variable without a value in a condition is refused, wherever it stands; else the answer would have more rows than the client asked for. */
import {
  buildClientSchema,
  type GraphQLInputField,
  GraphQLInputObjectType,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  getOperationAST,
  isInputObjectType,
  isListType,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { condition } from '../../src/schema/builder/conditions.ts';
import { checkConditions } from '../../src/schema/input/unset-variables.ts';
import { type OperationsSetting, startOperations } from './operations-setting.ts';

let setting: OperationsSetting;
let schema: GraphQLSchema;

beforeAll(async () => {
  setting = await startOperations();
  const { data } = await post(setting.refold.url, getIntrospectionQuery());
  schema = buildClientSchema(data as never); // the answer of this query
});
afterAll(() => setting.stop());

async function post(url: string | undefined, query: string, variables: Record<string, unknown> = {}) {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 't1 admin' },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as { data?: unknown; errors?: { message: string; extensions: { code: string } }[] };
}

/** Each place in an input type where a variable can stand: its path, and the literal around it. */
function* places(field: GraphQLInputField, depth: number): Generator<{ path: string; literal: string; type: string }> {
  yield { path: field.name, literal: `{ ${field.name}: $v }`, type: String(getNullableType(field.type)) };
  const named = getNamedType(field.type);
  if (depth === 0 || !isInputObjectType(named)) return;
  const isList = isListType(getNullableType(field.type));
  for (const inner of Object.values(named.getFields()))
    for (const { path, literal, type } of places(inner, depth - 1))
      yield {
        path: `${field.name}${isList ? '[0]' : ''}.${path}`,
        literal: `{ ${field.name}: ${isList ? `[${literal}]` : literal} }`,
        type,
      };
}

test('in each condition of each field, compiled and executed', async () => {
  let refused = 0;
  for (const field of Object.values(schema.getQueryType()?.getFields() ?? {})) {
    for (const argument of field.args.filter(({ name }) => name === 'where' || name === 'having')) {
      const type = getNamedType(argument.type);
      if (!isInputObjectType(type)) throw new Error(`${argument.name} is no condition`);
      const required = field.args.some(({ name }) => name === 'by') ? 'by: [], ' : '';
      for (const column of Object.values(type.getFields())) {
        for (const place of places(column, 1)) {
          const query = `query ($v: ${place.type}) { ${field.name}(${required}${argument.name}: ${place.literal}) { __typename } }`;
          for (const { url } of [setting.refold, setting.executing]) {
            const { data, errors } = await post(url, query);
            expect([query, data ?? null, errors?.[0]?.extensions.code]).toEqual([query, null, 'BAD_USER_INPUT']);
            expect(errors?.[0]?.message).toContain(`'${argument.name}.${place.path}' is the variable '$v'`);
          }
          refused++;
        }
      }
    }
  }
  expect(refused).toBeGreaterThan(300);
});

test('in fragments, but not in a field that is left out, and not as a whole condition', async () => {
  const fragment = `query ($v: ID) { ...part } fragment part on Query { things(where: { thingId: { eq: $v } }) { __typename } }`;
  const left = `query ($v: ID) { things(where: { thingId: { eq: $v } }) @include(if: false) { __typename } __typename }`;
  const whole = `query ($v: ThingFilter) { things(where: $v) { __typename } }`;
  const byDefault = `query ($v: ID = "t") { things(where: { thingId: { eq: $v } }) { __typename } }`;
  for (const { url } of [setting.refold, setting.executing]) {
    expect((await post(url, fragment)).errors?.[0]?.message).toMatch(/is the variable '\$v', which has no value/);
    for (const query of [left, whole, byDefault]) expect((await post(url, query)).errors).toBeUndefined();
  }
});

test('in a literal of JSON', () => {
  const json = new GraphQLScalarType({ name: 'JSON' });
  const contains = new GraphQLInputObjectType({ name: 'Contains', fields: { contains: { type: json } } });
  const where = new GraphQLInputObjectType({
    name: 'Filter',
    fields: { notes: { type: contains } },
    extensions: condition,
  });
  const things = { type: GraphQLString, args: { where: { type: where } } };
  const small = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { things } }) });
  const document = parse('query ($v: String) { things(where: { notes: { contains: { a: [{ b: $v }] } } }) }');
  const operation = getOperationAST(document) as OperationDefinitionNode; // it has one
  const check = (variables: Record<string, unknown>) => checkConditions(small, document, operation, variables);
  expect(() => check({})).toThrow("'where.notes.contains.a[0].b' is the variable '$v', which has no value");
  expect(() => check({ v: 'x' })).not.toThrow();
});

test('a column of a whole variable without an operator, compiled and executed', async () => {
  const list = 'query ($where: ThingFilter) { things(where: $where) { totalCount } }';
  const groups = 'query ($having: ThingGroupHaving) { thingsGrouped(by: [], having: $having) { count } }';
  for (const { url } of [setting.refold, setting.executing])
    for (const [query, variables, place] of [
      [list, { where: { thingId: { eq: undefined } } }, 'where.thingId'],
      [groups, { having: { count: { gt: undefined } } }, 'having.count'],
    ] as const)
      expect((await post(url, query, variables)).errors).toMatchObject([
        {
          message: `'${place}' has no operator; leave the condition out instead.`,
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ]);
});
