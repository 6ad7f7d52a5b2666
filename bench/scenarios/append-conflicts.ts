import { ConcurrencyConflict } from '../../src/index.ts';
import { type AppendLog, checkInlineRows, checkLog, openAppendLog, openInlineLog } from '../append-log.ts';
import { appendTurn } from '../append-turn.ts';
import { cart, cartSummaryInline, itemAdded } from '../carts.ts';
import { check } from '../check.ts';
import { createEmmett, emmettIsInstalled, emmettName } from '../peers/emmett.ts';
import { inTurn } from '../rounds.ts';
import type { BenchContext, Result, Scenario } from '../scenario.ts';
import { createVersionedAppends, type VersionedAppends } from '../versioned-appends.ts';

const callers = 32;

/** Appends of one event at an expected version, one in ten of them refused. Calls per second, of both kinds. */
export const appendConflicts: Scenario = {
  name: `append-conflicts-${callers}`,
  fullOnly: true,
  async run(context) {
    const { server } = context;
    const refold = await openAppendLog(server);
    const emmett = emmettIsInstalled()
      ? await createEmmett(await server.createDatabase('bench_append_emmett'), callers)
      : undefined;
    const byEmmett = emmett && createVersionedAppends('cart', (stream, at) => emmett.append(stream, 1, at), true);
    const result = await measure(appendConflicts.name, context, refold, byEmmett);
    if (emmett)
      check((await emmett.count()) === byEmmett?.written(), () => 'Emmett lost messages, or stored refused ones');
    await Promise.all([refold.close(), emmett?.close()]);
    return [result];
  },
};

/** The same with one inline projection. */
export const appendInlineConflicts: Scenario = {
  name: `append-inline-conflicts-${callers}`,
  fullOnly: true,
  async run(context) {
    const refold = await openInlineLog(context.server, [cartSummaryInline]);
    const result = await measure(appendInlineConflicts.name, context, refold);
    await checkInlineRows(refold);
    await refold.close();
    return [result];
  },
};

async function measure(
  name: string,
  context: BenchContext,
  refold: AppendLog,
  byPeer?: VersionedAppends,
): Promise<Result> {
  const appendAt = (streamId: string, expectedVersion: number) => appendByRefold(refold, streamId, expectedVersion);
  const withConflicts = createVersionedAppends('conflicts', appendAt, true);
  const without = createVersionedAppends('none', appendAt, false);
  const figures = await inTurn(context.rounds, {
    refold: appendTurn(context, callers, withConflicts.append),
    limit: appendTurn(context, callers, without.append),
    peer: byPeer && appendTurn(context, callers, byPeer.append),
  });
  await checkLog(refold, withConflicts.written() + without.written());
  return {
    scenario: name,
    unit: 'calls/s',
    better: 'more',
    refold: figures.refold ?? [],
    peer: figures.peer,
    peerName: emmettName,
    limit: figures.limit,
    limitName: 'the same append without conflicts',
    target: {},
  };
}

async function appendByRefold({ log }: AppendLog, streamId: string, expectedVersion: number): Promise<boolean> {
  try {
    await log.append({ family: cart, streamId, expectedVersion, events: [itemAdded] });
    return true;
  } catch (error) {
    if (!(error instanceof ConcurrencyConflict)) throw error;
    const { expected, actual } = error;
    check(
      expected === expectedVersion && actual === expectedVersion + 1,
      () => `a conflict of ${streamId}, expected at ${expectedVersion}, says ${expected} and ${actual}`,
    );
    return false;
  }
}
