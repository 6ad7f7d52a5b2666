import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstQuery, openCartsLive, ownWrite } from '../../examples/shopping-cart/things-to-try.ts';
import { asShown } from '../docs/as-shown.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const folder = join(import.meta.dirname, '../../examples/shopping-cart');
let database: TestDatabase;
let sample: ChildProcessByStdio<null, Readable, null>;
let printed = '';
let url: string;

beforeAll(async () => {
  database = await createTestDatabase();
  sample = spawn(process.execPath, [join(folder, 'start.ts')], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  sample.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  url = await until(() => {
    expect(sample.exitCode, printed).toBe(null);
    // Waits for the end of the announcement; log lines may follow.
    return /\n\n(?:\{.*\}\n)*$/.test(printed) && /http:\S+\/graphql/.exec(printed)?.[0];
  });
});

afterAll(async () => {
  if (sample.exitCode === null && sample.kill('SIGKILL')) await once(sample, 'exit');
  await database.drop();
});

function environment(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    DATABASE_URL: database.url,
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'warn',
    LOG_FORMAT: 'text',
  };
}

/** The block of a language in the README of the example. */
function blockOf(language: string): string {
  const page = readFileSync(join(folder, 'README.md'), 'utf8');
  return new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? expect.fail(`no ${language}`);
}

async function ask(query: string) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

test('it prints what to try next', () => {
  expect(printed.match(/curl -sN .*-d '\{"query":".*"\}'$/gm)).toHaveLength(3);
});

test('the operation of the README of the example has the response that it shows', async () => {
  let data: unknown;
  // A busy machine may take longer than the response may.
  await until(async () => {
    const answer = await ask(blockOf('graphql').replaceAll('"mine"', `"mine-${crypto.randomUUID()}"`));
    data = answer.data;
    return answer.errors?.[0]?.extensions.code !== 'POSITION_TIMEOUT';
  });
  expect(data).toEqual(asShown(JSON.parse(blockOf('json'))));
});

test('the shoppers fill carts, and a query lists them, highest total first', async () => {
  const { nodes } = await until(async () => {
    const { data } = await ask(firstQuery);
    return data.cartSummaries.nodes.length > 1 && data.cartSummaries;
  });
  const totals = nodes.map((node: { totalAmount: string }) => Number(node.totalAmount));
  expect(totals).toEqual([...totals].sort((a, b) => b - a));
});

/** Tries again with another id if the machine was too busy for the response to come in time. */
async function inTime(mutation: (attempt: number) => string) {
  let attempt = 0;
  return until(async () => {
    const answer = await ask(mutation(++attempt));
    return answer.errors?.[0]?.extensions.code !== 'POSITION_TIMEOUT' && answer;
  });
}

test('a mutation reads its own write', async () => {
  expect(await inTime((attempt) => ownWrite(`cart-of-a-test-${attempt}`))).toMatchObject({
    data: {
      addProductItem: { cartSummary: { totalAmount: '22.80', productItems: [{ name: 'Mug', quantity: 2 }] } },
    },
  });
});

test('a forbidden action is refused with the reason', async () => {
  expect(await ask('mutation { confirmShoppingCart(input: { cartId: "no-cart" }) { position } }')).toMatchObject({
    errors: [{ message: "There is no cart 'no-cart'. Open it first.", extensions: { code: 'COMMAND_REJECTED' } }],
  });
});

test("the response of the mutation that opens a cart includes the customer's updated profile", async () => {
  const profile = '{ name: "Ada Brandt", email: "ada@example.com" }';
  await ask(`mutation { registerCustomer(input: { customerId: "ada", profile: ${profile} }) { position } }`);
  let carts = 0;
  const answer = await inTime((attempt) => {
    carts = attempt;
    const input = `{ cartId: "cart-${attempt}-of-ada", customerId: "ada" }`;
    return `mutation { openShoppingCart(input: ${input}) { customerProfile { name cartsOpened } } }`;
  });
  expect(answer).toEqual({
    data: { openShoppingCart: { customerProfile: { name: 'Ada Brandt', cartsOpened: carts } } },
  });
});

test('a subscription sends the open carts, then their changes', async () => {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query: openCartsLive }),
  });
  const updates: { snapshot: unknown[] | null }[] = [];
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const messages = text.split('\n\n');
    text = messages.pop() ?? '';
    for (const message of messages) {
      const data = /^data: (.*)$/m.exec(message)?.[1];
      if (data) updates.push(JSON.parse(data).data.cartSummaries);
    }
    if (updates.length >= 3) break;
  }
  // Several may have come in one chunk.
  expect(updates.slice(0, 3).map((update) => update.snapshot !== null)).toEqual([true, false, false]);
});

test('Ctrl-C ends it in order', async () => {
  const exited = once(sample, 'exit');
  sample.kill('SIGINT');
  expect(await exited).toEqual([0, null]);
});

test('the command of the README of the example starts it from its folder', async () => {
  const terminal = spawn('bash', ['-c', blockOf('sh')], {
    cwd: folder,
    env: environment(),
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true, // a process group of its own
  });
  const closed = once(terminal, 'close');
  let output = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await until(() => {
    expect(terminal.exitCode, output).toBe(null);
    return output.includes('a mutation whose response includes its own write');
  });
  // As Ctrl-C does, it reaches npm and the program.
  process.kill(-(terminal.pid ?? 0), 'SIGINT');
  await closed;
  expect(output).toContain('refold: SIGINT, stopping.');
});
