import { once } from 'node:events';
import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { applicationFile } from '../cli/application-file.ts';
import { startCli } from '../support/cli.ts';
import { type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

/** A gateway and a worker, each its own process with the SDK of OpenTelemetry. */
async function startProcesses(text: string) {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const config = await applicationFile(text);
  const receiver = await startOtlpReceiver();
  const env = { DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'warn' };
  const start = (role: string) =>
    startCli(['start', '--role', role, '--config', config], { env: { ...env, ...receiver.envOf(role) } });
  const worker = start('worker');
  await worker.prints(/maintains the read models/);
  const gateway = start('gateway');
  const url = await gateway.url();
  return { database, receiver, url };
}

const json = { 'content-type': 'application/json' };

async function post(url: string, query: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { ...json, ...headers },
    body: JSON.stringify({ query }),
  });
  return response.json() as Promise<{ data?: Record<string, unknown>; errors?: unknown }>;
}

/** Subscribes over server-sent events. Returns what has arrived so far. */
async function subscribe(url: string, query: string): Promise<() => string> {
  const sent = request(`${url}/graphql`, {
    method: 'POST',
    headers: { ...json, accept: 'text/event-stream', 'content-length': JSON.stringify({ query }).length },
  });
  sent.end(JSON.stringify({ query }));
  const [response] = await once(sent, 'response');
  onTestFinished(() => void sent.destroy());
  response.on('error', () => {});
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

/** A span and what it has caused: `[service] name`, indented below its parent. Each span is sent by itself, so they arrive in any order. */
function treeOf(spans: readonly ReceivedSpan[], parentSpanId: string, depth = 0): string[] {
  return spans
    .filter((span) => span.parentSpanId === parentSpanId)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((span) => [
      `${'  '.repeat(depth)}[${span.service}] ${span.name}`,
      ...treeOf(spans, span.spanId, depth + 1),
    ]);
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const browser = '00f067aa0ba902b7';

test.each([
  ['evolve', 'projections: [balanceV1]'],
  [
    'evolveSql',
    `projections: [defineProjection({
      name: 'balance', version: 1, events: account,
      table: { accountId: t.text().primaryKey(), amount: t.decimal(14, 2), movements: t.bigint() },
      evolveSql: {
        events: ['Opened', 'Credited'],
        rows: "select stream_id as account_id, sum(coalesce((payload->>'amount')::numeric, 0)) as amount, count(*) as movements from batch group by 1",
        merge: { amount: 'add', movements: 'add' },
      },
    })]`,
  ],
])('a mutation is one tree of spans over two processes, from the request of the browser to the message of a subscriber: %s', async (_, projections) => {
  const { receiver, url, database } = await startProcesses(
    `export default defineConfig({ ${projections}, commands: [openAccount, credit] });`,
  );
  await until(async () => {
    const { errors } = await post(url, '{ balance(accountId: "a") { amount } }');
    return errors === undefined;
  });
  await post(url, 'mutation { openAccount(input: { accountId: "a", owner: "Ada" }) { position } }');
  const received = await subscribe(url, 'subscription Watch { balance(accountId: "a") { amount } }');
  await until(() => received().includes('"amount":'));

  await post(url, 'mutation Pay { credit(input: { accountId: "a", amount: "12.34" }) { position } }', {
    traceparent: `00-${traceId}-${browser}-01`,
  });
  await until(() => received().includes('12.34'));
  const ofTrace = () => receiver.spans.filter((span) => span.traceId === traceId);
  const expected = [
    '[gateway] POST /graphql',
    '  [gateway] mutation',
    '    [gateway] command credit',
    '      [gateway] append',
    '        [worker] fold balance@1',
    '          [gateway] follow balance@1',
    '            [gateway] push',
    '        [gateway] write appends',
  ];
  const statementsOf = () => ofTrace().filter(({ kind }) => kind === 'client');
  const summaries = () => statementsOf().map(({ attributes }) => attributes['db.query.summary']);
  await until(
    () =>
      expected.every((line) => ofTrace().some(({ name }) => line.endsWith(`] ${name}`))) &&
      summaries().some((summary) => summary?.includes('refold.append')),
  );
  const steps = treeOf(ofTrace(), browser).filter((line) => !/\] [A-Z]{3,}/.test(line) || line.includes('] POST'));
  expect(steps).toEqual(expected);
  const spans = new Map(ofTrace().map((span) => [span.name, span]));
  expect(spans.get('POST /graphql')).toMatchObject({
    kind: 'server',
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/graphql',
      'url.path': '/graphql',
      'http.response.status_code': '200',
    },
  });
  expect(spans.get('mutation')).toMatchObject({
    kind: 'server',
    attributes: { 'graphql.operation.type': 'mutation', 'graphql.operation.name': 'Pay' },
  });
  expect(spans.get('push')).toMatchObject({
    kind: 'producer',
    attributes: {
      'graphql.operation.type': 'subscription',
      'graphql.operation.name': 'Watch',
      'refold.subscribers': '1',
    },
  });
  // No span says what was paid.
  for (const { attributes, name } of statementsOf())
    expect(attributes).toMatchObject({
      'db.system.name': 'postgresql',
      'db.query.summary': name,
      'server.port': expect.any(String),
    });
  expect(JSON.stringify(receiver.spans)).not.toContain('12.34');
  expect(JSON.stringify(receiver.spans)).not.toContain('Ada');
  const db = createDatabase({ url: database.url });
  onTestFinished(() => db.close());
  const [event] = await db.query<{ traceparent: string }>({
    text: `select metadata ->> 'traceparent' as traceparent from refold.events order by position desc limit 1`,
  });
  expect(event?.traceparent).toBe(`00-${traceId}-${spans.get('append')?.spanId}-01`);
});
