import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, defineReactor, type Refold } from '../../src/index.ts';
import { account, balanceV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

let database: TestDatabase;
let refold: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  refold = await createRefold(
    defineConfig({
      projections: [balanceV1],
      reactors: [defineReactor({ name: 'greeter', events: account, handle: { Opened: async () => {} } })],
      database: { url: database.url },
      // It need not respond: a gateway starts without it.
      readStores: { analytics: { url: 'postgres://127.0.0.1:1/refold', maxConnections: 6 } },
      gateway: { port: 0 },
    }),
  );
});
afterAll(async () => {
  await refold.stop();
  await database.drop();
});

const file = (name: string) => readFileSync(join(import.meta.dirname, '../../monitoring', name), 'utf8');

/** The metrics that expressions of PromQL name. A histogram has three series. */
const metricsIn = (expressions: readonly string[]) =>
  new Set(
    expressions
      .flatMap((expression) => expression.match(/\b(?:refold|nodejs|process)_\w+/g) ?? [])
      .map((name) => name.replace(/_(bucket|count|sum)$/, '')),
  );

test('each metric of the alert rules and of the dashboard exists', async () => {
  const scraped = await (await fetch(`${refold.url}/metrics`)).text();
  const existing = new Set([...scraped.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => String(name)));
  const alerts = [...file('alerts.yaml').matchAll(/^ +expr: (.*)$/gm)].map(([, expression]) => String(expression));
  const dashboard: { panels: { targets?: { expr: string }[] }[] } = JSON.parse(file('grafana-dashboard.json'));
  const panels = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  for (const expressions of [alerts, panels]) {
    const named = metricsIn(expressions);
    expect(named.size).toBeGreaterThan(10);
    expect([...named].filter((name) => !existing.has(name))).toEqual([]);
  }
});
