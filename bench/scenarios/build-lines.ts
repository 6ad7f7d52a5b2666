import { buildByRefold } from '../build.ts';
import { forgetReadModels } from '../cart-log.ts';
import { cartLines } from '../carts.ts';
import { check } from '../check.ts';
import { buildBySql, cartLinesBySql } from '../limits/set-based-build.ts';
import { openClient } from '../open-client.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

/** A new version with one row for each event: writing is all of the work. */
export const buildLines: Scenario = {
  name: 'build-row-per-event',
  async run({ server, rounds, longLog }) {
    const { url, events } = await longLog();
    const client = await openClient(url);
    const figures = await inTurn(rounds, {
      async refold() {
        await forgetReadModels(client);
        await server.settle();
        return events / (await buildByRefold(url, [cartLines]));
      },
      async limit() {
        await server.settle();
        return events / (await buildBySql(client, cartLinesBySql));
      },
    });
    const { rows } = await client.query<{ n: number }>(cartLinesBySql.difference);
    check(rows[0]?.n === 0, () => `${rows[0]?.n} rows differ from those of the SQL statement`);
    await client.end();
    return [
      {
        scenario: 'build-row-per-event',
        unit: 'events/s',
        better: 'more',
        refold: figures.refold ?? [],
        limit: figures.limit,
        limitName: 'INSERT … SELECT',
        target: { toLimit: 0.4 },
      },
    ];
  },
};
