import { setTimeout as pause } from 'node:timers/promises';
import type { EventLog } from '../../src/index.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { buildByRefold } from '../build.ts';
import { callsPerSecond } from '../calls-per-second.ts';
import { createCartLog } from '../cart-log.ts';
import { cart, cartSummary, itemAdded } from '../carts.ts';
import { check, checkSameRows } from '../check.ts';
import { startServerProcess } from '../http/server-process.ts';
import { cartSummaryBySql } from '../limits/set-based-build.ts';
import { openClient } from '../open-client.ts';
import { followCommits } from '../progress.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';
import { appendSteadily } from '../steady-appends.ts';

const callers = 32;
const steadily = 500;
const events = 40_000;
const streams = 2000;
const streamOf = (number: number) => `cart-${number % streams}`;

/** A projection in a separate process follows the head of the log, while others append as fast as they can, and steadily. */
export const tailAtTheHead: Scenario = {
  name: 'tail-at-the-head',
  fullOnly: true,
  async run({ server, quick, rounds }) {
    const milliseconds = quick ? 1000 : 5000;
    const followed = await createCartLog(server, 'bench_tail', events, streams);
    const alone = await createCartLog(server, 'bench_tail_alone', events, streams);
    await buildByRefold(followed.url, [cartSummary]);
    await using follower = await startServerProcess('refold-server.ts', followed.url);
    const client = await openClient(followed.url);
    const committed = await followCommits(client, cartSummary);
    const followedDb = createDatabase({ url: followed.url });
    const aloneDb = createDatabase({ url: alone.url });
    const followedLog = createEventLog(followedDb, [cart]);
    const aloneLog = createEventLog(aloneDb, [cart]);
    let appendsFollowed = 0;

    const figures = await inTurn(rounds, {
      async refold() {
        await server.settle();
        const { appends, last, start } = await appendFor(followedLog, milliseconds);
        await committed.until(last);
        appendsFollowed += appends;
        return (appends * 1000) / (committed.at(last) - start);
      },
      async limit() {
        await server.settle();
        const { appends, start } = await appendFor(aloneLog, milliseconds);
        return (appends * 1000) / (performance.now() - start);
      },
      async processorTime() {
        await server.settle();
        const before = await follower.processor();
        const steady = appendSteadily(followedLog, steadily, streamOf);
        await pause(milliseconds);
        const { length: appends } = await steady.stop();
        await committed.until(Number(await followedLog.head()));
        appendsFollowed += appends;
        return ((await follower.processor()) - before) / appends;
      },
    });

    await cartSummaryBySql.build(client);
    await checkSameRows(client, cartSummary, cartSummaryBySql);
    const { rows } = await client.query<{ n: number }>('select count(*)::int as n from refold.events');
    check(rows[0]?.n === events + appendsFollowed, () => `${appendsFollowed} appends, ${rows[0]?.n} events`);
    await Promise.all([client.end(), followedDb.close(), aloneDb.close()]);
    return [
      {
        scenario: 'tail-at-the-head',
        unit: 'events/s',
        better: 'more',
        refold: figures.refold ?? [],
        limit: figures.limit,
        limitName: 'the same appends without a projection',
        target: {},
      },
      {
        scenario: 'processor-of-an-event-at-the-head',
        unit: 'µs',
        better: 'less',
        refold: figures.processorTime ?? [],
        target: {},
      },
    ];
  },
};

async function appendFor(log: EventLog, milliseconds: number) {
  let appends = 0;
  let last = 0;
  const start = performance.now();
  await callsPerSecond(callers, milliseconds, async () => {
    const { position } = await log.append({ family: cart, streamId: streamOf(appends++), events: [itemAdded] });
    last = Math.max(last, Number(position));
  });
  return { appends, last, start };
}
