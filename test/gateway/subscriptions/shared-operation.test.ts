import { buildSchema, type GraphQLSchema, parse } from 'graphql';
import { expect, test } from 'vitest';
import { createResponses, createSharedOperations } from '../../../src/gateway/subscriptions/shared-operation.ts';

let executions = 0;

/** `field` is resolved with the context of the subscriber. */
function schemaWith(field: (context: { viewer: string }) => unknown): GraphQLSchema {
  const schema = buildSchema('type Query { a: Int } type Subscription { plain(of: Int): Int, own: String }');
  const fields = schema.getSubscriptionType()?.getFields() ?? {};
  Object.assign(fields.plain ?? {}, { resolve: () => ++executions });
  Object.assign(fields.own ?? {}, {
    resolve: (_: unknown, __: unknown, context: { viewer: string }) => field(context),
  });
  return schema;
}

const schema = schemaWith(({ viewer }) => viewer);
const document = parse('subscription ($of: Int) { plain(of: $of) }');
const own = parse('subscription { own }');
const answers = createResponses((error) => {
  throw error;
});
const [ann, bob] = [{ viewer: 'ann' }, { viewer: 'bob' }];

test('subscribers of the same operation share the result of an event', async () => {
  const operations = createSharedOperations();
  const one = operations.join({ schema, document, variableValues: { of: 1 } });
  const same = operations.join({ schema, document, variableValues: { of: 1 } });
  const other = operations.join({ schema, document, variableValues: { of: 2 } });
  const event = {};
  executions = 0;
  const answer = await answers.answer(one, event, ann);
  expect(await answers.answer(same, event, bob)).toBe(answer);
  expect(executions).toBe(1);
  expect(await answers.answer(other, event, ann)).not.toBe(answer);
  expect(await answers.answer(one, {}, ann)).not.toBe(answer);
  expect(executions).toBe(3);
  answers.forget();
});

test.each([
  ['at once', schema],
  ['later', schemaWith(async ({ viewer }) => Promise.resolve(viewer))],
  ['after a while without it', schemaWith((context) => Promise.resolve().then(() => context.viewer))],
])('a resolver that uses the context %s is executed for each subscriber', async (_, personal) => {
  const operation = createSharedOperations().join({ schema: personal, document: own });
  const event = {};
  const made = [ann, bob, ann].map((context) => answers.answer(operation, event, context));
  const texts = (await Promise.all(made)).map(({ json }) => JSON.parse(json.toString()).data.own);
  expect(texts).toEqual(['ann', 'bob', 'ann']);
  answers.forget();
});

test('an operation is kept as long as it has a subscriber', () => {
  const operations = createSharedOperations();
  const join = () => operations.join({ schema, document, operationName: null, variableValues: {} });
  const first = join();
  const second = join();
  expect(second).toBe(first);
  operations.leave(first);
  expect(join()).toBe(first);
  operations.leave(first);
  operations.leave(first);
  expect(join()).not.toBe(first);
});
