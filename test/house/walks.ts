/** A plain application, run by plain-application.test.ts in a process of its own: prints the functions of `src/` that each walk runs. */
import { Session } from 'node:inspector/promises';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createRefold, defineConfig } from '../../src/index.ts';
import { balanceV1, credit, openAccount } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';

const sources = join(import.meta.dirname, '../../src');
// What the process does by itself runs at least once in this time: its periods are a second, or some.
const idleMs = 8000;

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** The named functions of `src/` that ran since the last call, such as `store/event-log.ts append`, with their place in the file. */
async function functionsRun(): Promise<Map<string, string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const ofSources = result.filter(({ url }) => url.startsWith('file:') && fileURLToPath(url).startsWith(sources));
  return new Map(
    ofSources.flatMap(({ url, functions }) =>
      functions.flatMap(({ functionName, ranges: [range] }) => {
        if (functionName === '' || !range || range.count === 0) return [];
        const name = `${relative(sources, fileURLToPath(url))} ${functionName}`;
        return [[`${name} ${range.startOffset}`, name] as const];
      }),
    ),
  );
}

const refold = await createRefold(
  defineConfig({
    projections: [balanceV1],
    commands: [openAccount, credit],
    database: { url: String(process.argv[2]) },
    gateway: { port: 0 },
  }),
);

function ask(query: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
}

async function answered(query: string): Promise<void> {
  const { errors } = (await (await ask(query)).json()) as { errors?: unknown }; // a response of GraphQL
  if (errors !== undefined) throw new Error(JSON.stringify(errors));
}

let pushed = 0;
const stream = await ask('subscription { balance(accountId: "a") { amount } }', { accept: 'text/event-stream' });
const reader = (async () => {
  for await (const chunk of stream.body ?? []) if (String(Buffer.from(chunk)).includes('event: next')) pushed++;
})().catch(() => {}); // it ends with the process

const walks: Readonly<Record<string, () => Promise<void>>> = {
  async mutation() {
    const before = pushed;
    await answered('mutation { credit(input: { accountId: "a", amount: "5.50" }) { position } }');
    await until(() => pushed > before);
  },
  lookup: () => answered('{ balance(accountId: "a") { amount owner } }'),
  list: () => answered('{ balances(first: 10) { nodes { accountId amount } } }'),
};
await answered('mutation { openAccount(input: { accountId: "a", owner: "ada" }) { position } }');
await until(() => pushed > 0);
// What is prepared once for all operations is prepared now.
for (const walk of [...Object.values(walks), ...Object.values(walks)]) await walk();

await functionsRun();
await pause(idleMs);
const idle = await functionsRun();
const found: Record<string, readonly string[]> = {};
async function ranIn(walk: () => Promise<void>): Promise<Map<string, string>> {
  await functionsRun();
  await walk();
  return functionsRun();
}
for (const [name, walk] of Object.entries(walks)) {
  // Twice: what the process does each minute may fall into one of them.
  const again = await ranIn(walk);
  const ran = [...(await ranIn(walk))].filter(([place]) => again.has(place) && !idle.has(place));
  found[name] = ran.map(([, functionName]) => functionName).sort();
}
process.stdout.write(`${JSON.stringify(found)}\n`);
await refold.stop();
await reader;
