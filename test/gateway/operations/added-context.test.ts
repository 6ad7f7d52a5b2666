import { expect, test } from 'vitest';
import { extendSchema } from '../../../src/index.ts';
import { active } from '../../schema/in-memory-services.ts';
import { parcelV2 } from '../../schema/parcels.ts';
import { startGateway } from '../gateway-under-test.ts';

function greeting<C extends { readonly greeting?: string }>(context: () => C | Promise<C>) {
  return extendSchema({ context }, ({ builder }) => {
    builder.queryField('hello', (t) => t.string({ nullable: true, resolve: (_, __, { greeting }) => greeting }));
    builder.subscriptionField('hellos', (t) =>
      t.string({
        async *subscribe() {
          yield 1;
        },
        resolve: (_, __, { greeting }) => String(greeting),
      }),
    );
  });
}

test('resolvers find what the application adds to the context', async () => {
  const { post, endpoint } = await startGateway({ extension: greeting(async () => ({ greeting: 'good day' })) });
  expect((await post('{ hello }')).data).toEqual({ hello: 'good day' });
  const stream = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query: 'subscription { hellos }' }),
  });
  expect(await stream.text()).toContain('{"data":{"hellos":"good day"}}');
});

test.each([
  [
    'replaces what Refold needs',
    () => ({ greeting: 'good day', readModels: {} }),
    "'context' returned 'readModels', which the context has already",
  ],
  ['returns no object', () => 'good day' as never, "'context' returned good day; it returns an object."],
])('a context that %s fails the operation, and the log says why', async (_, context, problem) => {
  const { post, logged, services } = await startGateway({ extension: greeting(context) });
  const { errors } = await post('{ hello }');
  expect(errors?.[0]?.extensions.code).toBe('INTERNAL_SERVER_ERROR');
  expect(JSON.stringify(logged)).toContain(problem);
  expect(services.open).toBe(0);
});

test('an activation builds the extension again, and its fields read the version that is active then', async () => {
  const extension = extendSchema(({ builder, readModel }) => {
    const parcels = readModel('parcel');
    builder.queryField('parcelOf', (t) =>
      t.field({
        type: parcels.rowType,
        nullable: true,
        args: { id: t.arg.string({ required: true }) },
        resolve: (_, { id }, context, info) => parcels.findByKey({ parcelId: id }, context, info),
      }),
    );
  });
  const { post, pack, services, logged } = await startGateway({ extension });
  await pack({ a: { weight: '12' } });
  expect((await post('{ parcelOf(id: "a") { weight } }')).data).toEqual({ parcelOf: { weight: '12.000' } });
  services.serve(active(parcelV2));
  expect((await post('{ parcelOf(id: "a") { weight heavy } }')).data).toEqual({
    parcelOf: { weight: '12.0000', heavy: true },
  });
  // All of its versions are retired.
  services.serve();
  expect((await post('{ parcelOf(id: "a") { heavy } }')).data).toEqual({ parcelOf: { heavy: true } });
  expect(logged).toContainEqual(
    expect.objectContaining({ msg: 'could not build a schema for the new versions; still serving the old ones' }),
  );
});
