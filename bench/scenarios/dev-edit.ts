import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createCartLog } from '../cart-log.ts';
import { check } from '../check.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const events = 10_000;
const streams = 500;

const config = `
  import { defineConfig } from '${resolve('src/index.ts')}';
  import { cartItems } from './cart-items.v1.ts';
  export default defineConfig({ projections: [cartItems], gateway: { port: 0 } });
`;

const projection = (factor: number) => `
  import { cart } from '${resolve('bench/carts.ts')}';
  import { defineProjection, t } from '${resolve('src/index.ts')}';
  export const cartItems = defineProjection({
    name: 'cart_items',
    version: 1,
    events: cart,
    table: { cartId: t.text().primaryKey(), items: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Opened: () => ({ items: 0 }),
      ItemAdded: (row, { payload }) => row && { items: row.items + payload.quantity * ${factor} },
    },
  });
`;

/** From saving an edited `evolve` until `refold dev` answers with rows of the new code. */
export const devEdit: Scenario = {
  name: 'dev-edit',
  async run({ server, rounds }) {
    const { url } = await createCartLog(server, 'bench_edit', events, streams);
    const folder = await mkdtemp(join(tmpdir(), 'refold-bench-edit-'));
    const save = (factor: number) => writeFile(join(folder, 'cart-items.v1.ts'), projection(factor));
    await save(1);
    await writeFile(join(folder, 'refold.config.ts'), config);
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    const dev = await startDev(folder, url);
    try {
      const once = await itemsOf(dev.url);
      let factor = 1;
      const { refold } = await inTurn(rounds, {
        async refold() {
          await server.settle();
          factor++;
          const start = performance.now();
          await save(factor);
          for (;;) {
            const items = await itemsOf(dev.url);
            if (items === once * factor) return (performance.now() - start) / 1000;
            check(items === once * (factor - 1), () => `${items} items are those of no version of the code`);
          }
        },
      });
      return [{ scenario: 'dev-edit', unit: 's', better: 'less', refold: refold ?? [], target: { atMost: 2 } }];
    } finally {
      await dev.stop();
      await rm(folder, { recursive: true });
    }
  },
};

/** Waits while the version is being rebuilt. */
async function itemsOf(url: string): Promise<number> {
  for (;;) {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ cartItems(cartId: "cart-7") { items } }' }),
    });
    const { data } = (await response.json()) as { data?: { cartItems?: { items: number } | null } };
    if (data?.cartItems) return data.cartItems.items;
    await new Promise((done) => setTimeout(done, 5));
  }
}

async function startDev(folder: string, databaseUrl: string) {
  const child = spawn(process.execPath, [resolve('src/cli/main.ts'), 'dev'], {
    cwd: folder,
    env: { ...process.env, DATABASE_URL: databaseUrl, LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((done) => child.once('close', () => done()));
  const url = await new Promise<string>((found, failed) => {
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      const [, address] = /GraphQL +(http:\S+)\/graphql/.exec(printed) ?? [];
      if (address) found(address);
    });
    void ended.then(() => failed(new Error(`refold dev ended before it listened:\n${printed}`)));
  });
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
