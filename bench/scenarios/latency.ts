import { createDatabase } from '../../src/store/database.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { migrate } from '../../src/store/migrate.ts';
import { cart, itemAdded } from '../carts.ts';
import { check } from '../check.ts';
import { startServerProcess } from '../http/server-process.ts';
import { subscribe } from '../http/server-sent-events.ts';
import { createNotifyRoundTrip } from '../limits/notify-round-trip.ts';
import { inTurn, quantile } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const perSecond = 100;

/** From sending an append until a subscriber has the row that it changed: log, fold, commit, look-up, server-sent event. */
export const latency: Scenario = {
  name: 'append-to-subscriber',
  async run({ server, quick, rounds }) {
    const seconds = quick ? 1 : 10;
    const url = await server.createDatabase('bench_latency');
    await migrate(url);
    await using refold = await startServerProcess('refold-server.ts', url);
    const db = createDatabase({ url });
    const log = createEventLog(db, [cart]);
    const roundTrip = await createNotifyRoundTrip(url);
    await log.append({ family: cart, streamId: 'cart-1', events: [{ type: 'Opened', payload: { customer: 'c' } }] });

    // Each append adds one item, so that the count in an answer tells which appends it shows: all up to that number.
    const sentAt: number[] = [];
    const took: number[] = [];
    const subscriber = await subscribe(
      `${refold.url}/graphql`,
      'subscription { cartSummary(cartId: "cart-1") { items } }',
      (text) => {
        for (const [, items] of text.matchAll(/"items":(\d+)/g)) {
          while (took.length < Number(items)) took.push(performance.now() - (sentAt[took.length] ?? 0));
        }
      },
    );

    const p99: { refold: number[]; limit: number[] } = { refold: [], limit: [] };
    const figures = await inTurn(rounds, {
      async refold() {
        await server.settle();
        const before = took.length;
        await atRate(seconds, async () => {
          sentAt.push(performance.now());
          await log.append({ family: cart, streamId: 'cart-1', events: [itemAdded] });
        });
        const deadline = performance.now() + 60_000;
        while (took.length < sentAt.length && performance.now() < deadline) await pause(5);
        check(took.length === sentAt.length, () => `${sentAt.length} appends, but the subscriber saw ${took.length}`);
        p99.refold.push(quantile(took.slice(before), 0.99));
        return quantile(took.slice(before), 0.5);
      },
      async limit() {
        await server.settle();
        const trips: number[] = [];
        await atRate(seconds, async () => void trips.push(await roundTrip.once()));
        p99.limit.push(quantile(trips, 0.99));
        return quantile(trips, 0.5);
      },
    });
    subscriber.close();
    await roundTrip.close();
    await db.close();
    const common = { unit: 'ms', better: 'less', limitName: 'commit + NOTIFY' } as const;
    return [
      {
        ...common,
        scenario: 'append-to-subscriber-p50',
        refold: figures.refold ?? [],
        limit: figures.limit,
        target: { toLimit: 3 },
      },
      { ...common, scenario: 'append-to-subscriber-p99', ...p99, target: { toLimit: 5 } },
    ];
  },
};

/** Calls at a fixed rate, whether or not the last call has ended; resolves when all have. */
async function atRate(seconds: number, call: () => Promise<void>): Promise<void> {
  const start = performance.now();
  const calls: Promise<void>[] = [];
  while (calls.length < seconds * perSecond) {
    if (performance.now() - start >= (calls.length * 1000) / perSecond) calls.push(call());
    else await pause(1);
  }
  await Promise.all(calls);
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
