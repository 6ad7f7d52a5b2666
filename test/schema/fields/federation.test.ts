import { getStitchedSchemaFromSupergraphSdl } from '@graphql-tools/federation';
import type { ExecutionRequest, Executor } from '@graphql-tools/utils';
import { type ExecutionResult, execute, parse, print } from 'graphql';
import { expect, test } from 'vitest';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { composers } from '../../support/federation.ts';
import { active, InMemoryServices, versionMap } from '../in-memory-services.ts';
import { allCommands, courierDayV1, parcel, parcelRow, parcelV1 } from '../parcels.ts';

const served = [active(parcelV1), active(courierDayV1)];
const schema = buildSchema({ versions: versionMap(served), commands: allCommands, maxPageSize: 50, federation: true });

/** Another team's subgraph, which knows parcels by their id. */
const claims = {
  typeDefs: parse(`
    extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
    type Query { claims: [Claim!]! }
    type Claim { reason: String! parcel: Parcel }
    type Parcel @key(fields: "parcelId", resolvable: false) { parcelId: ID! }
  `),
  answer: {
    claims: ['a', 'b', 'gone'].map((id) => ({
      reason: `${id} is late`,
      parcel: { __typename: 'Parcel', parcelId: id },
    })),
  },
};

async function run(
  services: InMemoryServices,
  source: string,
  variableValues: Record<string, unknown> = {},
): Promise<ExecutionResult> {
  const result = await execute({ schema, document: parse(source), variableValues, contextValue: services.context() });
  return JSON.parse(JSON.stringify(result)) as ExecutionResult;
}

async function packed(): Promise<InMemoryServices> {
  const services = new InMemoryServices(served);
  for (const id of ['a', 'b'])
    await services.append(parcel, id, {
      type: 'ParcelPacked',
      payload: { row: parcelRow({ weight: id === 'a' ? '1' : '2' }) },
    });
  return services;
}

async function sdlOf(services: InMemoryServices): Promise<string> {
  const { data } = await run(services, '{ _service { sdl } }');
  return (data as { _service: { sdl: string } })._service.sdl; // as asked
}

test.each(
  composers,
)('%s: a supergraph with another subgraph is composed, and a gateway joins rows by their keys in one look-up', async (_, compose) => {
  const services = await packed();
  const { supergraphSdl, errors } = compose([
    { name: 'parcels', url: 'http://parcels', typeDefs: parse(await sdlOf(services)) },
    { name: 'claims', url: 'http://claims', typeDefs: claims.typeDefs },
  ]);
  expect(errors).toEqual([]);
  const gateway = getStitchedSchemaFromSupergraphSdl({
    supergraphSdl,
    batch: true,
    onSubschemaConfig(config) {
      config.executor = (async ({ document, variables }: ExecutionRequest) =>
        config.endpoint === 'http://claims'
          ? { data: claims.answer }
          : run(services, print(document), variables)) as Executor; // whose results have the type that the caller expects
    },
  });
  const result = await execute({
    schema: gateway,
    document: parse('{ claims { reason parcel { parcelId weight status } } }'),
  });
  const { data } = JSON.parse(JSON.stringify(result));
  expect(data.claims.slice(0, 2)).toEqual([
    { reason: 'a is late', parcel: { parcelId: 'a', weight: '1.000', status: 'Packed' } },
    { reason: 'b is late', parcel: { parcelId: 'b', weight: '2.000', status: 'Packed' } },
  ]);
  expect(services.reads.map(({ kind }) => kind)).toEqual(['findByKeys', 'findByKeys', 'findByKeys']); // of one turn: one statement
});

test.each(composers)('%s: two applications are composed with each other', async (_, compose) => {
  const one = (projection: typeof parcelV1 | typeof courierDayV1) => {
    const only = [active(projection)];
    const built = buildSchema({ versions: versionMap(only), commands: [], maxPageSize: 50, federation: true });
    return execute({
      schema: built,
      document: parse('{ _service { sdl } }'),
      contextValue: new InMemoryServices(only).context(),
    });
  };
  const sdls = await Promise.all([one(parcelV1), one(courierDayV1)]);
  const { errors, publicSdl } = compose(
    sdls.map(({ data }, index) => ({
      name: `app-${index}`,
      url: `http://app-${index}`,
      typeDefs: parse((data as { _service: { sdl: string } })._service.sdl), // as asked
    })),
  );
  expect(errors).toEqual([]);
  // A gateway could not tell which application an id belongs to.
  expect(publicSdl).not.toMatch(/^ {2}nodes?\(/m);
  expect(publicSdl).toContain('type Parcel implements Node');
});

test.each([
  ['a type that is no entity', [{ __typename: 'Query' }]],
  ['a key that is not whole', [{ __typename: 'CourierDay', courier: 'Ada' }]],
  ['no object', ['Parcel']],
  ['nothing', [null]],
  ['more than fits', Array.from({ length: 1001 }, () => ({ __typename: 'Parcel', parcelId: 'a' }))],
])('a representation of %s is bad input', async (_, representations) => {
  const { errors } = await run(
    await packed(),
    'query ($r: [_Any!]!) { _entities(representations: $r) { __typename } }',
    { r: representations },
  );
  expect(errors).toHaveLength(1);
  expect(errors?.[0]?.message).not.toContain('undefined (reading');
});
