import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fromBundle } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const root = join(import.meta.dirname, '../..');
const readme = readFileSync(join(root, 'examples/ride-hailing/README.md'), 'utf8');
const operations = [...readme.matchAll(/```graphql\n(.*?)```\n+```json\n(.*?)```/gs)].map(
  ([, query = '', answer = '']) => ({
    query,
    answer,
  }),
);

let database: TestDatabase;
let program: ChildProcessByStdio<null, Readable, null>;
let printed = '';
let url: string;

beforeAll(async () => {
  database = await createTestDatabase();
  const [, command] = /```sh\nnpm install && (.*)\n```/.exec(readme) ?? expect.fail('no command');
  program = spawn(command ?? '', {
    cwd: root,
    shell: true,
    detached: true, // its signals go to all processes of the command
    env: {
      ...process.env,
      ...fromBundle(),
      DATABASE_URL: database.url,
      PORT: '0',
      HOST: '127.0.0.1',
      LOG_LEVEL: 'warn',
      LOG_FORMAT: 'text',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  program.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  url = await until(() => {
    expect(program.exitCode, printed).toBe(null);
    return /GraphQL +(http:\S+\/graphql)\n/.exec(printed)?.[1];
  });
});
afterAll(async () => {
  if (program.exitCode === null && program.signalCode === null) {
    const exited = once(program, 'exit');
    process.kill(-(program.pid ?? expect.fail('it has not started')), 'SIGINT');
    await exited;
  }
  await database.drop();
});

test.each(operations)('the command of the README starts an application that answers as it shows: $query', async ({
  query,
  answer,
}) => {
  const { data, errors } = await ask(query);
  expect(errors).toBeUndefined();
  expect(data).toEqual(JSON.parse(answer));
});

test('what may not follow is rejected, as the README says', async () => {
  const { errors } = await ask('mutation { adjustPrice(input: { orderId: "o1", price: "9.00" }) { position } }');
  expect(errors).toMatchObject([{ extensions: { code: 'COMMAND_REJECTED', details: { status: 'Accepted' } } }]);
  expect(readme).toContain('{ "status": "Accepted" }');
});

test('the README is a screen long, and names the files of the example', () => {
  expect(operations.length).toBe(2);
  expect(readme.split('\n').length).toBeLessThan(70);
});

async function ask(query: string) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return response.json();
}
