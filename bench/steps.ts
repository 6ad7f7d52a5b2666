/**
 * `npm run bench:steps`: the steps until a subscriber has a row that an append changed, in ms from sending it: when each
 * statement of the process was sent and when its response came. Shows the last of 1,500 appends at 10 ms intervals, and the median and
 * 99th percentile of the last 1,000.
 * With `--own`, the application appends itself, as a mutation does; without it, another process appends.
 */
import pg from 'pg';
import { pino } from 'pino';
import { createRefold, defineConfig } from '../src/index.ts';
import { createEventLog } from '../src/store/event-log.ts';
import { createDatabase } from '../src/store/postgres/database.ts';
import { migrate } from '../src/store/server/migrate.ts';
import { cart, cartSummary, itemAdded } from './carts.ts';
import { subscribe } from './http/server-sent-events.ts';
import { quantile } from './rounds.ts';
import { startBenchServer } from './server.ts';

const appends = 1500;
const warm = 500;
const shown = 3;

let sentAt = performance.now();
let steps: string[] | undefined;
const sinceSent = () => (performance.now() - sentAt).toFixed(2).padStart(6);
noteStatements();

const server = await startBenchServer();
try {
  const url = await server.createDatabase('bench_steps');
  await migrate(url);
  const config = defineConfig({
    projections: [cartSummary],
    database: { url },
    gateway: { port: 0 },
    development: false,
  });
  const refold = await createRefold(config, { logger: pino({ level: 'silent' }) });
  const db = createDatabase({ url });
  const log = process.argv.includes('--own') ? refold.log : createEventLog(db, [cart]);
  await log.append({ family: cart, streamId: 'cart-1', events: [{ type: 'Opened', payload: { customer: 'c' } }] });

  let seen = 0;
  let arrived = Promise.withResolvers<void>();
  const query = 'subscription { cartSummary(cartId: "cart-1") { items } }';
  const onText = (text: string) => {
    for (const [, items] of text.matchAll(/"items":(\d+)/g)) seen = Math.max(seen, Number(items));
    arrived.resolve();
  };
  const subscriber = await subscribe(`${refold.url}/graphql`, query, { onText });
  const took: number[] = [];
  for (let count = 1; count <= appends; count++) {
    steps = count > appends - shown ? [] : undefined;
    sentAt = performance.now();
    await log.append({ family: cart, streamId: 'cart-1', events: [itemAdded] });
    while (seen < count) {
      await arrived.promise;
      arrived = Promise.withResolvers();
    }
    took.push(performance.now() - sentAt);
    steps?.push(`${sinceSent()}          the subscriber has it\n`);
    await new Promise((resolve) => setTimeout(resolve, 10));
    if (steps) console.log(steps.join('\n'));
  }
  const last = took.slice(warm);
  console.log(`median ${quantile(last, 0.5).toFixed(2)} ms, 99 of 100 within ${quantile(last, 0.99).toFixed(2)} ms`);
  subscriber.close();
  await refold.stop();
  await db.close();
} finally {
  await server.stop();
}

/** Makes every client of the driver record its statements. */
function noteStatements(): void {
  const driver = pg.Client.prototype as unknown as { query(...given: unknown[]): unknown }; // any of its overloads
  const query = driver.query;
  driver.query = function noted(this: unknown, ...given: unknown[]) {
    const from = sinceSent();
    const answer = query.apply(this, given);
    const note = () => steps?.push(`${from} → ${sinceSent()}  ${nameOf(given[0])}`);
    // With a callback, as COPY and the pool use, only the time of sending is known.
    if (answer instanceof Promise) answer.then(note, note);
    else steps?.push(`${from}           ${nameOf(given[0])}`);
    return answer;
  };
}

function nameOf(statement: unknown): string {
  if (typeof statement === 'string') return statement;
  const { name, text } = statement as { readonly name?: string; readonly text?: string }; // the argument of a client's query()
  return name ?? text?.trim().replaceAll(/\s+/g, ' ').slice(0, 60) ?? 'copy';
}
