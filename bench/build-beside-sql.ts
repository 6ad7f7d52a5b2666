import type { Projection } from '../src/index.ts';
import { buildByRefold } from './build.ts';
import { forgetReadModels } from './cart-log.ts';
import { checkSameRows } from './check.ts';
import type { SqlBuild } from './limits/set-based-build.ts';
import { openClient } from './open-client.ts';
import { inTurn, type Turn } from './rounds.ts';
import type { BenchContext } from './scenario.ts';

interface Peers {
  readonly peer?: Turn | undefined;
  readonly peerByDefault?: Turn | undefined;
}

/** Events per second of a first build over the long log, compared with the same table by SQL and with peers. Both tables have the same rows. */
export async function buildBesideSql(
  { server, rounds, longLog }: BenchContext,
  projection: Projection,
  bySql: SqlBuild,
  { peer, peerByDefault }: Peers = {},
) {
  const { url, events } = await longLog();
  const client = await openClient(url);
  const figures = await inTurn(rounds, {
    async refold() {
      await forgetReadModels(client);
      await server.settle();
      return events / (await buildByRefold(url, [projection]));
    },
    async limit() {
      await server.settle();
      return events / (await bySql.build(client));
    },
    peer,
    peerByDefault,
  });
  await checkSameRows(client, projection, bySql);
  await client.end();
  return figures;
}
