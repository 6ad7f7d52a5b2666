import { createDatabase } from '../../src/store/database.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { migrate } from '../../src/store/migrate.ts';
import { callsPerSecond } from '../calls-per-second.ts';
import { cart } from '../carts.ts';
import { check } from '../check.ts';
import { createPlainInsert } from '../limits/plain-insert.ts';
import { createEmmett, emmettIsInstalled, emmettName } from '../peers/emmett.ts';
import { inTurn } from '../rounds.ts';
import type { BenchContext, Result, Scenario, Target } from '../scenario.ts';

const payload = { product: 'product-7', quantity: 1, price: '12.50' };

/** So many callers append at the same time, so many events a call, each to streams of its own. Events a second. */
function appending(callers: number, eventsPerCall: number, target: Target): Scenario {
  const name = `append-${eventsPerCall}x${callers}`;
  return { name, run: (context) => measure(context, name, callers, eventsPerCall, target) };
}

export const append: readonly Scenario[] = [
  appending(1, 1, { toLimit: 0.75 }),
  appending(32, 1, { toLimit: 2, toPeer: 10 }),
  appending(128, 1, { toLimit: 2.5 }),
  appending(32, 10, { toPeer: 5 }),
];

async function measure(
  { server, quick, rounds }: BenchContext,
  name: string,
  callers: number,
  eventsPerCall: number,
  target: Target,
): Promise<readonly Result[]> {
  const milliseconds = quick ? 400 : 3000;
  const url = await server.createDatabase('bench_append');
  await migrate(url);
  const db = createDatabase({ url });
  const log = createEventLog(db, [cart]);
  const plain = await createPlainInsert(url, callers);
  const emmett = emmettIsInstalled()
    ? await createEmmett(await server.createDatabase('bench_append_emmett'), Math.min(callers, 32))
    : undefined;
  let refoldCalls = 0;
  let emmettCalls = 0;
  let plainCalls = 0;

  const byRefold = async (caller: number) => {
    const streamId = `cart-${caller}-${Math.floor(refoldCalls++ / 10)}`;
    await log.append({ family: cart, streamId, events: Array(eventsPerCall).fill({ type: 'ItemAdded', payload }) });
  };
  const byPlainInsert = async (caller: number) => {
    plainCalls++;
    await plain.append(caller);
  };
  const byEmmett =
    emmett &&
    (async (caller: number) => {
      const stream = `cart-${caller}-${Math.floor(emmettCalls++ / 10)}`;
      await emmett.append(stream, Array(eventsPerCall).fill({ type: 'ItemAdded', data: payload }));
    });
  const turn = (call: (caller: number) => Promise<void>, events: number) => async () => {
    await server.settle();
    await callsPerSecond(callers, 100, call);
    return events * (await callsPerSecond(callers, milliseconds, call));
  };

  const figures = await inTurn(rounds, {
    refold: turn(byRefold, eventsPerCall),
    limit: turn(byPlainInsert, 1),
    peer: byEmmett && turn(byEmmett, eventsPerCall),
  });

  const [row] = await db.query<{ events: number; versions: number; gaps: number }>({
    text: `
      select
        (select count(*)::int from refold.events) as events,
        (select sum(version)::int from refold.streams) as versions,
        (select count(*)::int from refold.streams s
          where version <> (select max(stream_position) from refold.events e
            where e.family = s.family and e.stream_id = s.stream_id)) as gaps`,
  });
  check(row?.events === refoldCalls * eventsPerCall, () => `${refoldCalls} appends, ${row?.events} events`);
  check(row.versions === row.events && row.gaps === 0, () => `${row.versions} versions, ${row.gaps} gaps`);
  check((await plain.count()) === plainCalls, () => 'plain INSERT lost rows');
  if (emmett) check((await emmett.count()) === emmettCalls * eventsPerCall, () => 'Emmett lost messages');

  await db.close();
  await plain.close();
  await emmett?.close();
  return [
    {
      scenario: name,
      unit: 'events/s',
      better: 'more',
      refold: figures.refold ?? [],
      peer: figures.peer,
      peerName: emmettName,
      limit: figures.limit,
      limitName: 'INSERT and commit per event',
      target,
    },
  ];
}
