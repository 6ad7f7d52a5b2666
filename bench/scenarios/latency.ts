import { setTimeout as pause } from 'node:timers/promises';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { migrate } from '../../src/store/server/migrate.ts';
import { cart, cartSummary, itemAdded } from '../carts.ts';
import { check } from '../check.ts';
import { startServerProcess } from '../http/server-process.ts';
import { subscribe } from '../http/server-sent-events.ts';
import { createNotifyRoundTrip } from '../limits/notify-round-trip.ts';
import { openClient } from '../open-client.ts';
import { createProgress, followCommits } from '../progress.ts';
import { inTurn, quantile } from '../rounds.ts';
import type { BenchContext, Result, Scenario, Target } from '../scenario.ts';

/** From sending an append until the changed row is committed, and until a subscriber has it: log, fold, commit, look-up, server-sent event. */
export const latency: readonly Scenario[] = [
  {
    name: 'append-to-subscriber',
    run: async (context) => results(await measure(context, 100), '', { 50: { toLimit: 3 }, 99: { toLimit: 5 } }),
  },
  ...[10, 1000].map((perSecond) => ({
    name: `append-to-subscriber-${perSecond}`,
    fullOnly: true,
    run: async (context: BenchContext) => results(await measure(context, perSecond), `-${perSecond}`, {}),
  })),
];

/** In milliseconds, one list per round. */
interface Latencies {
  readonly row: readonly (readonly number[])[];
  readonly subscriber: readonly (readonly number[])[];
  readonly limit: readonly (readonly number[])[];
}

async function measure({ server, quick, rounds }: BenchContext, perSecond: number): Promise<Latencies> {
  // A 99th percentile of fewer appends would mean little.
  const appends = Math.max(quick ? 30 : 200, perSecond * (quick ? 1 : 10));
  const url = await server.createDatabase('bench_latency');
  await migrate(url);
  await using refold = await startServerProcess('refold-server.ts', url);
  const db = createDatabase({ url });
  const log = createEventLog(db, [cart]);
  // One for both, because each notifying commit wakes every listener of the database.
  const listener = await openClient(url);
  const roundTrip = await createNotifyRoundTrip(url, listener);
  const rows = await followCommits(listener, cartSummary);
  await log.append({ family: cart, streamId: 'cart-1', events: [{ type: 'Opened', payload: { customer: 'c' } }] });

  // Each append adds one item, so the count in a message shows which appends it includes: all up to that number.
  const shown = createProgress();
  const query = 'subscription { cartSummary(cartId: "cart-1") { items } }';
  const onText = (text: string) => {
    for (const [, items] of text.matchAll(/"items":(\d+)/g)) shown.tell(Number(items));
  };
  const subscriber = await subscribe(`${refold.url}/graphql`, query, { onText });
  await shown.until(0);
  const append = async () => {
    const sent = performance.now();
    const { position, streams } = await log.append({ family: cart, streamId: 'cart-1', events: [itemAdded] });
    return { sent, position: Number(position), items: (streams[0]?.version ?? 0) - 1 };
  };

  const took = { row: [] as number[][], subscriber: [] as number[][], limit: [] as number[][] };
  let items = 0;
  await inTurn(rounds, {
    async refold() {
      await server.settle();
      const appended = await atRate(perSecond, appends, append);
      items += appends;
      await Promise.all([shown.until(items), rows.until(Math.max(...appended.map(({ position }) => position)))]);
      took.row.push(appended.map(({ sent, position }) => rows.at(position) - sent));
      took.subscriber.push(appended.map((one) => shown.at(one.items) - one.sent));
      return appends;
    },
    async limit() {
      await server.settle();
      took.limit.push(await atRate(perSecond, appends, roundTrip.once));
      return appends;
    },
  });
  const [row] = await db.query<{ items: number }>({ text: 'select items from read_models.cart_summary' });
  check(row?.items === items, () => `${items} items were added, and the row has ${row?.items}`);
  subscriber.close();
  await Promise.all([roundTrip.close(), listener.end(), db.close()]);
  return took;
}

/** Calls at a fixed rate, whether or not the last call has ended; resolves when all have. */
async function atRate<T>(perSecond: number, count: number, call: () => Promise<T>): Promise<T[]> {
  const start = performance.now();
  const calls: Promise<T>[] = [];
  while (calls.length < count) {
    if (performance.now() - start >= (calls.length * 1000) / perSecond) calls.push(call());
    else await pause(1);
  }
  return Promise.all(calls);
}

const percentiles = [50, 95, 99] as const;

function results(
  latencies: Latencies,
  rate: string,
  ofSubscriber: { readonly [P in (typeof percentiles)[number]]?: Target },
): Result[] {
  return (['row', 'subscriber'] as const).flatMap((end) =>
    percentiles.map((percentile) => {
      const ofRounds = (rounds: Latencies['row']) => rounds.map((took) => quantile(took, percentile / 100));
      return {
        scenario: `append-to-${end}${rate}-p${percentile}`,
        unit: 'ms',
        better: 'less',
        refold: ofRounds(latencies[end]),
        limit: ofRounds(latencies.limit),
        limitName: 'commit + NOTIFY',
        target: (end === 'subscriber' && ofSubscriber[percentile]) || {},
      };
    }),
  );
}
