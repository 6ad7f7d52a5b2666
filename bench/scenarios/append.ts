import { checkLog, openAppendLog } from '../append-log.ts';
import { appendTurn } from '../append-turn.ts';
import { cart, itemAdded } from '../carts.ts';
import { check } from '../check.ts';
import { createPlainInsert } from '../limits/plain-insert.ts';
import { createOwnStreams } from '../own-streams.ts';
import { createEmmett, emmettIsInstalled, emmettName } from '../peers/emmett.ts';
import { inTurn } from '../rounds.ts';
import type { BenchContext, Result, Scenario, Target } from '../scenario.ts';

export const append: readonly Scenario[] = [
  appending(1, 1, { target: { toLimit: 0.75 } }),
  appending(32, 1, { target: { toLimit: 2, toPeer: 10 } }),
  appending(128, 1, { target: { toLimit: 2.5 } }),
  appending(32, 10, { target: { toPeer: 5 } }),
  appending(8, 1, { fullOnly: true }),
  appending(1, 10, { fullOnly: true }),
  appending(8, 10, { fullOnly: true }),
  appending(128, 10, { fullOnly: true }),
];

interface Appending {
  readonly target?: Target;
  readonly fullOnly?: boolean;
}

/** This many callers append at the same time, this many events per call, each to its own streams. Events per second. */
function appending(callers: number, eventsPerCall: number, { target = {}, fullOnly = false }: Appending): Scenario {
  const name = `append-${eventsPerCall}x${callers}`;
  return { name, fullOnly, run: (context) => measure(context, name, callers, eventsPerCall, target) };
}

async function measure(
  context: BenchContext,
  name: string,
  callers: number,
  eventsPerCall: number,
  target: Target,
): Promise<readonly Result[]> {
  const { server, rounds } = context;
  const refold = await openAppendLog(server);
  const plain = await createPlainInsert(await server.createDatabase('bench_append_plain'), callers);
  const emmett = emmettIsInstalled()
    ? await createEmmett(await server.createDatabase('bench_append_emmett'), Math.min(callers, 32))
    : undefined;
  const events = Array<typeof itemAdded>(eventsPerCall).fill(itemAdded);
  const streams = { refold: createOwnStreams(), peer: createOwnStreams() };

  const byRefold = (caller: number) =>
    refold.log.append({ family: cart, streamId: streams.refold.next(caller), events });
  const byEmmett = emmett && ((caller: number) => emmett.append(streams.peer.next(caller), eventsPerCall));

  const figures = await inTurn(rounds, {
    refold: appendTurn(context, callers, byRefold, eventsPerCall),
    limit: appendTurn(context, callers, plain.append),
    peer: byEmmett && appendTurn(context, callers, byEmmett, eventsPerCall),
  });

  await checkLog(refold, streams.refold.calls * eventsPerCall);
  await plain.check();
  if (emmett) check((await emmett.count()) === streams.peer.calls * eventsPerCall, () => 'Emmett lost messages');
  await Promise.all([refold.close(), plain.close(), emmett?.close()]);
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
