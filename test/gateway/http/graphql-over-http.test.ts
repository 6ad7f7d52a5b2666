import { serverAudits } from 'graphql-http';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { defineConfig } from '../../../src/index.ts';
import { createRefold, type Refold } from '../../../src/refold.ts';
import { balanceV1, credit, openAccount } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

let database: TestDatabase;
let refold: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  const config = { projections: [balanceV1], commands: [openAccount, credit], gateway: { port: 0 }, development: true };
  refold = await createRefold(defineConfig({ ...config, database: { url: database.url } }));
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

describe('the public audits of the GraphQL over HTTP specification', () => {
  for (const audit of serverAudits({ url: () => `${refold.url}/graphql`, fetchFn: fetch })) {
    test(audit.name, async () => {
      const result = await audit.fn();
      if (result.status !== 'ok') throw new Error(`${result.status}: ${result.reason}`);
    });
  }
});
