import type pg from 'pg';
import { requestRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { buildByRefold } from '../build.ts';
import { createCartLog, forgetReadModels } from '../cart-log.ts';
import { cart, cartSummary } from '../carts.ts';
import { checkSameRows } from '../check.ts';
import { startServerProcess } from '../http/server-process.ts';
import { cartSummaryBySql } from '../limits/set-based-build.ts';
import { openClient } from '../open-client.ts';
import { inTurn, quantile } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';
import { appendSteadily } from '../steady-appends.ts';

/** A separate process rebuilds a table next to the serving one, while others append. */
export const rebuild: Scenario = {
  name: 'rebuild',
  async run({ server, quick, rounds, longLog }) {
    const { url, events, streams } = quick
      ? await createCartLog(server, 'bench_rebuild', 100_000, 5_000)
      : await createCartLog(server, 'bench_rebuild', 1_000_000, 50_000);
    const untouched = await longLog();
    const client = await openClient(url);
    const untouchedClient = await openClient(untouched.url);
    await buildByRefold(url, [cartSummary]);
    await using _worker = await startServerProcess('refold-server.ts', url);
    const db = createDatabase({ url });
    const log = createEventLog(db, [cart]);
    const append = () => appendSteadily(log, 500, (number) => `cart-${number % streams}`);
    const p99With: number[] = [];

    const figures = await inTurn(rounds, {
      async refold() {
        await server.settle();
        const appends = append();
        const start = performance.now();
        await requestRebuild(db, cartSummary, 'read_models', { actor: 'bench', reason: 'bench' });
        await until(client, 'select count(*) = 0 as yes from refold.rebuilds');
        const seconds = (performance.now() - start) / 1000;
        p99With.push(quantile(await appends.stop(), 0.99));
        return events / seconds;
      },
      async firstBuild() {
        await forgetReadModels(untouchedClient);
        await server.settle();
        return events / (await buildByRefold(untouched.url, [cartSummary]));
      },
      async p99Without() {
        await server.settle();
        const appends = append();
        await new Promise((resolve) => setTimeout(resolve, quick ? 1500 : 5000));
        return quantile(await appends.stop(), 0.99);
      },
    });

    await until(
      client,
      `select min(checkpoint) >= (select max(position) from refold.events) as yes from refold.processors`,
    );
    await cartSummaryBySql.build(client);
    await checkSameRows(client, cartSummary, cartSummaryBySql);
    await Promise.all([client.end(), untouchedClient.end(), db.close()]);
    return [
      {
        scenario: 'rebuild-under-appends',
        unit: 'events/s',
        better: 'more',
        refold: figures.refold ?? [],
        limit: figures.firstBuild,
        limitName: 'the first build',
        target: { toLimit: 0.5 },
      },
      {
        scenario: 'append-p99-under-rebuild',
        unit: 'ms',
        better: 'less',
        refold: p99With,
        limit: figures.p99Without,
        limitName: 'p99 without a rebuild',
        target: { toLimit: 2 },
      },
    ];
  },
};

async function until(client: pg.Client, text: string): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ yes: boolean | null }>(text);
    if (rows[0]?.yes) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
