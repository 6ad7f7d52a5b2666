import { describe, expect, test } from 'vitest';
import { RefoldError } from '../../../src/errors.ts';
import { building } from '../../schema/in-memory-services.ts';
import { parcelV1 } from '../../schema/parcels.ts';
import { startGateway } from '../gateway-under-test.ts';

const pack =
  'mutation ($input: PackParcelInput!, $version: Int) { packParcel(input: $input, expectedVersion: $version) { position } }';

test('the error for an input that the validator refuses has the path of each issue', async () => {
  const { post, logged } = await startGateway();
  const { errors } = await post(pack, { input: { parcelId: '', weight: 'heavy' } });
  expect(errors).toEqual([
    {
      message: expect.stringContaining("The input of 'packParcel' is not valid: parcelId:"),
      path: ['packParcel'],
      locations: [expect.anything()],
      extensions: {
        code: 'BAD_USER_INPUT',
        issues: [
          { path: ['parcelId'], message: expect.any(String) },
          { path: ['weight'], message: "expected a weight such as '1.250'" },
        ],
      },
    },
  ]);
  expect(logged).toEqual([]);
});

test('the error of a refused command has its reason and details', async () => {
  const { post } = await startGateway();
  await post(pack, { input: { parcelId: 'a' } });
  const { data, errors } = await post(pack, { input: { parcelId: 'a' } });
  expect(data).toEqual({ packParcel: null });
  expect(errors?.[0]?.extensions).toEqual({
    code: 'COMMAND_REJECTED',
    reason: 'It is packed already.',
    details: { status: 'Packed' },
  });
});

test('a refused command keeps the results of earlier commands in the same operation', async () => {
  const { post } = await startGateway();
  const { data, errors } = await post(`mutation {
    first: packParcel(input: { parcelId: "a" }) { streamVersion }
    second: packParcel(input: { parcelId: "a" }) { streamVersion }
    third: packParcel(input: { parcelId: "b" }) { streamVersion }
  }`);
  expect(data).toEqual({ first: { streamVersion: 1 }, second: null, third: { streamVersion: 1 } });
  expect(errors).toMatchObject([{ path: ['second'], extensions: { code: 'COMMAND_REJECTED' } }]);
});

test('a conflict has the expected and the actual version', async () => {
  const { post } = await startGateway();
  const { errors } = await post(pack, { input: { parcelId: 'a' }, version: 7 });
  expect(errors?.[0]?.extensions).toEqual({ code: 'CONCURRENCY_CONFLICT', expected: 7, actual: 0 });
});

test('the error for a version that is not ready shows its progress', async () => {
  const { post } = await startGateway({ served: [building(parcelV1)] });
  const { errors } = await post('{ parcel(parcelId: "a") { weight } }');
  expect(errors?.[0]?.extensions).toEqual({
    code: 'PROJECTION_NOT_READY',
    projection: 'parcel',
    version: 1,
    state: 'building',
    position: '0',
    head: '0',
    progress: 1,
  });
  expect(errors?.[0]?.message).toBe(
    'parcel@1 is building and not active yet: 100 % done, at position 0 of 0. Ask again later.',
  );
});

test("the error for a position that is not reached in time shows the version's position", async () => {
  const { post } = await startGateway();
  const { errors } = await post('query @after(position: "7") { parcel(parcelId: "a") { weight } }');
  expect(errors?.[0]?.extensions).toEqual({
    code: 'POSITION_TIMEOUT',
    projection: 'parcel',
    position: '7',
    reached: '0',
  });
});

test.each([
  [
    'query ($id: ID!) { parcel(parcelId: $id) { weight } }',
    {},
    'Variable "$id" of required type "ID!" was not provided.',
  ],
  ['query ($w: ParcelFilter) { parcels(where: $w) { totalCount } }', { w: { weight: { eq: 1.5 } } }, 'Decimal expects'],
  ['query ($p: Position) @after(position: $p) { parcels { totalCount } }', { p: 'abc' }, 'Expected a global position'],
  [
    'query ($first: Int) { parcels(first: $first) { totalCount } }',
    { first: 1.5 },
    'Int cannot represent non-integer value',
  ],
  ['{ parcels(after: "x") { nodes { weight } } }', {}, "'after' is not a cursor of this list"],
])('a mistake of the client is BAD_USER_INPUT: %s %j', async (query, variables, message) => {
  const { post, logged } = await startGateway();
  const { errors } = await post(query, variables);
  expect(errors?.[0]).toMatchObject({
    message: expect.stringContaining(message),
    extensions: { code: 'BAD_USER_INPUT' },
  });
  expect(logged).toEqual([]);
});

test('an invalid position in a header is refused like any other wrong input', async () => {
  const { post } = await startGateway();
  const { errors } = await post('{ parcels { totalCount } }', {}, { 'refold-after': 'yesterday' });
  expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT' });
});

test('invalid documents have the codes that clients know', async () => {
  const { post } = await startGateway();
  expect((await post('{ parcel(')).errors?.[0]?.extensions).toEqual({ code: 'GRAPHQL_PARSE_FAILED' });
  expect((await post('{ nothing }')).errors?.[0]?.extensions).toEqual({ code: 'GRAPHQL_VALIDATION_FAILED' });
});

test.each([
  ['an unexpected error', new Error('password "secret" is wrong')],
  ['an error of the database', new RefoldError('DATABASE_ERROR', 'relation "secret" does not exist')],
  ['something that is no error', 'secret'],
])('%s is masked, and logged under the id in the response', async (_, thrown) => {
  const { post, services, logged } = await startGateway();
  services.openReadModels = () => ({
    ...({} as ReturnType<typeof services.openReadModels>),
    findByKeys: () => Promise.reject(thrown),
    close: async () => {},
  });
  const answer = await post('{ parcel(parcelId: "a") { weight } }');
  expect(JSON.stringify(answer)).not.toContain('secret');
  const [error] = answer.errors ?? [];
  expect(error).toMatchObject({ path: ['parcel'], extensions: { code: 'INTERNAL_SERVER_ERROR' } });
  const { errorId } = error?.extensions ?? {};
  expect(error?.message).toBe(`Something went wrong. Details are in the server log under ${errorId}.`);
  expect(logged).toEqual([expect.objectContaining({ errorId, path: ['parcel'] })]);
  expect(JSON.stringify(logged)).toContain('secret');
});

describe('without the database', () => {
  const unavailable = new RefoldError('DATABASE_UNAVAILABLE', 'PostgreSQL at secret:5432: nothing listens there.');
  const unknown = new RefoldError('OUTCOME_UNKNOWN', 'PostgreSQL at secret:5432: the connection was reset.');
  const away = {
    message: 'The database is not available. Nothing was done: try again.',
    extensions: { code: 'DATABASE_UNAVAILABLE', retriable: true },
  };

  async function gatewayWithout(thrown: Error) {
    const gateway = await startGateway();
    gateway.services.openReadModels = () => ({
      ...({} as ReturnType<typeof gateway.services.openReadModels>),
      findByKeys: () => Promise.reject(thrown),
      findPage: () => Promise.reject(thrown),
      close: async () => {},
    });
    return gateway;
  }

  test.for([
    'application/json',
    'application/graphql-response+json',
  ])('a query has status 503, as %s', async (accept) => {
    const { post } = await gatewayWithout(unavailable);
    for (const query of ['{ parcel(parcelId: "a") { weight } }', '{ parcels { nodes { weight } } }']) {
      const answer = await post(query, {}, { accept });
      expect(answer).toMatchObject({ status: 503, errors: [away] });
      expect(JSON.stringify(answer)).not.toContain('secret');
    }
  });

  test('an event that only a newer release can read has status 503, and nothing of it is in the answer', async () => {
    const place = { family: 'secret', position: '7', streamId: 'secret' };
    const { post } = await gatewayWithout(new RefoldError('PAYLOAD_VERSION_UNKNOWN', "'Sent' at 7 is secret.", place));
    const answer = await post('{ parcel(parcelId: "a") { weight } }');
    expect(answer).toMatchObject({
      status: 503,
      errors: [
        {
          message: 'A newer release has written data that this server can not read yet. Nothing was done: try again.',
          extensions: { code: 'PAYLOAD_VERSION_UNKNOWN', retriable: true },
        },
      ],
    });
    expect(JSON.stringify(answer)).not.toContain('secret');
  });

  test('before the operation begins there is no data, and the status is 503', async () => {
    const { post, services } = await startGateway();
    services.openReadModels = () => {
      throw unavailable;
    };
    expect(await post('{ parcel(parcelId: "a") { weight } }')).toMatchObject({ status: 503, errors: [away] });
  });

  test('a command that may have been written says so, and what to do', async () => {
    const { post, services } = await startGateway();
    services.execute = () => Promise.reject(unknown);
    expect(await post(pack, { input: { parcelId: 'a' } })).toMatchObject({
      status: 503,
      errors: [{ message: expect.stringContaining('same idempotency key'), extensions: { code: 'OUTCOME_UNKNOWN' } }],
    });
  });

  test('a partly executed mutation has status 200: the whole must not be sent again', async () => {
    const { post, services } = await startGateway();
    const execute = services.execute.bind(services);
    services.execute = (command, input, options) =>
      JSON.stringify(input).includes('lost') ? Promise.reject(unavailable) : execute(command, input, options);
    const answer = await post(`mutation {
      first: packParcel(input: { parcelId: "a" }) { streamVersion }
      second: packParcel(input: { parcelId: "lost" }) { streamVersion }
    }`);
    expect(answer).toMatchObject({
      status: 200,
      data: { first: { streamVersion: 1 }, second: null },
      errors: [{ path: ['second'], ...away }],
    });
  });

  test('results in this process and on sockets have no status', async () => {
    const { gateway } = await gatewayWithout(unavailable);
    const { errors } = await gateway.execute('{ parcel(parcelId: "a") { weight } }');
    expect(errors?.[0]?.extensions).toEqual(away.extensions);
  });

  test('the process is not ready, and says why', async () => {
    const { gateway, services } = await startGateway();
    const ready = () => fetch(`${gateway.url}/health/ready`);
    expect((await ready()).status).toBe(200);
    Object.assign(services, { problems: () => ({ appends: 'the database takes no writes' }) });
    const response = await ready();
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({
      ready: false,
      problems: { appends: 'the database takes no writes' },
    });
  });
});

test('an error before the operation begins is masked, too', async () => {
  const { post, services, logged } = await startGateway();
  services.openReadModels = () => {
    throw new Error('secret');
  };
  const answer = await post('{ parcel(parcelId: "a") { weight } }');
  expect(answer.status).toBe(500);
  expect(answer.errors?.[0]?.extensions).toEqual({ code: 'INTERNAL_SERVER_ERROR', errorId: expect.any(String) });
  expect(JSON.stringify(answer)).not.toContain('secret');
  expect(logged).toHaveLength(1);
});
