import { getStitchedSchemaFromSupergraphSdl } from '@graphql-tools/federation';
import type { ExecutionRequest, Executor } from '@graphql-tools/utils';
import { execute, parse, print } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { composers } from '../support/federation.ts';
import { untilActive } from '../support/patient.ts';
import { balanceV1, credit, openAccount } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

let database: TestDatabase;
let refold: Refold;
beforeAll(async () => {
  database = await createTestDatabase();
  refold = await createRefold(
    defineConfig({
      projections: [balanceV1],
      commands: [openAccount, credit],
      database: { url: database.url },
      gateway: { port: 0, federation: true, positionTimeout: 300_000 },
    }),
  );
  await untilActive(refold, balanceV1.id);
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

/** Another team's subgraph, which knows accounts by their id. */
const mails = {
  typeDefs: parse(`
    extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
    type Query { mails: [Mail!]! }
    type Mail { subject: String! balance: Balance }
    type Balance @key(fields: "accountId", resolvable: false) { accountId: ID! }
  `),
  answer: (accounts: readonly string[]) => ({
    mails: accounts.map((accountId) => ({
      subject: `To ${accountId}`,
      balance: { __typename: 'Balance', accountId },
    })),
  }),
};

async function overHttp(query: string, variables: unknown = {}) {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as { data?: unknown; errors?: unknown };
}

test.each(
  composers,
)('%s composes what a server returns, and a gateway reads, writes, orders and joins through it', async (composer, compose) => {
  const { data } = await overHttp('{ _service { sdl } }');
  const { sdl } = (data as { _service: { sdl: string } })._service; // as selected
  const { errors, supergraphSdl } = compose([
    { name: 'bank', url: 'http://bank', typeDefs: parse(sdl) },
    { name: 'mails', url: 'http://mails', typeDefs: mails.typeDefs },
  ]);
  expect(errors).toEqual([]);
  const accounts = ['a', 'b'].map((name) => `${name} of ${composer}`);
  const gateway = getStitchedSchemaFromSupergraphSdl({
    supergraphSdl,
    batch: true,
    onSubschemaConfig(config) {
      config.executor = (async ({ document, variables }: ExecutionRequest) =>
        config.endpoint === 'http://mails'
          ? { data: mails.answer([...accounts, 'nobody']) }
          : overHttp(print(document), variables)) as Executor; // whose results have the type that the caller expects
    },
  });
  const ask = async (source: string, variableValues: Record<string, unknown> = {}) =>
    JSON.parse(JSON.stringify(await execute({ schema: gateway, document: parse(source), variableValues })));
  for (const accountId of accounts) {
    const opened = await ask(
      `mutation ($id: ID!, $owner: String!) {
          openAccount(input: { accountId: $id, owner: $owner }) { streamVersion balance { amount } }
        }`,
      { id: accountId, owner: composer },
    );
    expect(opened).toEqual({ data: { openAccount: { streamVersion: 1, balance: { amount: '0.00' } } } });
  }
  const joined = await ask(`{ mails { subject balance { accountId owner amount } } }`);
  expect(joined.data.mails.slice(0, 2)).toEqual(
    accounts.map((accountId) => ({
      subject: `To ${accountId}`,
      balance: { accountId, owner: composer, amount: '0.00' },
    })),
  );
  const listed = await ask(
    `query ($owner: String!) {
        balances(where: { owner: { eq: $owner } }, orderBy: [{ accountId: DESC }]) { nodes { accountId } }
      }`,
    { owner: composer },
  );
  expect(listed).toEqual({ data: { balances: { nodes: accounts.toReversed().map((accountId) => ({ accountId })) } } });
});
