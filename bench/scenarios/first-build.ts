import { buildBesideSql } from '../build-beside-sql.ts';
import { cartSummary } from '../carts.ts';
import { check } from '../check.ts';
import { cartSummaryBySql } from '../limits/set-based-build.ts';
import {
  createEmmett,
  type Emmett,
  emmettDefault,
  emmettIsInstalled,
  emmettName,
  type Pulling,
} from '../peers/emmett.ts';
import type { Scenario } from '../scenario.ts';

/** A new version folds a long log into one row per stream. */
export const firstBuild: Scenario = {
  name: 'first-build',
  async run(context) {
    const { server, quick } = context;
    const emmett = emmettIsInstalled()
      ? await createEmmett(await server.createDatabase('bench_build_emmett'), 10)
      : undefined;
    // Its pace does not depend on the length of the log, and the whole log would take minutes.
    const emmettEvents = quick ? 500 : 10_000;
    if (emmett) await fill(emmett, emmettEvents);
    let emmettBuilds = 0;
    const byEmmett = (one: Emmett, pulling: Pulling) => async () => {
      await server.settle();
      const start = performance.now();
      const items = await one.build(`totals_${++emmettBuilds}`, pulling);
      const seconds = (performance.now() - start) / 1000;
      check(items === emmettEvents, () => `Emmett projected ${items} items of ${emmettEvents}`);
      return emmettEvents / seconds;
    };

    const figures = await buildBesideSql(context, cartSummary, cartSummaryBySql, {
      peer: emmett && byEmmett(emmett, { batchSize: emmettEvents, pullingFrequencyInMs: 1 }),
      peerByDefault: emmett && byEmmett(emmett, emmettDefault),
    });
    await emmett?.close();
    return [
      {
        scenario: 'first-build',
        unit: 'events/s',
        better: 'more',
        refold: figures.refold ?? [],
        peer: figures.peer,
        peerName: emmettName,
        limit: figures.limit,
        limitName: 'one SQL statement',
        target: { toLimit: 0.9, toPeer: 10 },
      },
      {
        scenario: 'first-build-beside-defaults',
        unit: 'events/s',
        better: 'more',
        refold: figures.refold ?? [],
        peer: figures.peerByDefault,
        peerName: `${emmettName} with its defaults`,
        target: { toPeer: 100 },
      },
    ];
  },
};

async function fill(emmett: Emmett, events: number): Promise<void> {
  const perStream = 20;
  for (let stream = 0; stream < events / perStream; stream++) await emmett.append(`cart-${stream}`, perStream);
}
