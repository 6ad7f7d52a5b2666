import { checkLog, openAppendLog } from '../append-log.ts';
import { appendTurn } from '../append-turn.ts';
import { cart, itemAdded } from '../carts.ts';
import { check } from '../check.ts';
import { createPlainInsert } from '../limits/plain-insert.ts';
import { createOwnStreams } from '../own-streams.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const callers = 32;
const streamsOfCall = 3;

/** Each call appends an event to each of several streams, to all of them or to none. Events per second. */
export const appendStreams: Scenario = {
  name: `append-streams-${callers}`,
  fullOnly: true,
  async run(context) {
    const { server, rounds } = context;
    const refold = await openAppendLog(server);
    const plain = await createPlainInsert(await server.createDatabase('bench_append_plain'), callers, streamsOfCall);
    const groups = createOwnStreams();
    const byRefold = (caller: number) => {
      const group = groups.next(caller);
      const streams = Array.from({ length: streamsOfCall }, (_, number) => {
        return { family: cart, streamId: `${group}/${number}`, events: [itemAdded] };
      });
      return refold.log.appendToStreams({ streams });
    };
    const figures = await inTurn(rounds, {
      refold: appendTurn(context, callers, byRefold, streamsOfCall),
      limit: appendTurn(context, callers, plain.append, streamsOfCall),
    });

    await checkLog(refold, groups.calls * streamsOfCall);
    const [row] = await refold.db.query<{ torn: number }>({
      text: `
        select count(*)::int as torn
        from (
          select from refold.streams
          group by split_part(stream_id, '/', 1)
          having count(*) <> $1 or min(version) <> max(version)
        ) torn`,
      values: [streamsOfCall],
    });
    check(row?.torn === 0, () => `of ${row?.torn} groups of streams not all have the same events`);
    await plain.check();
    await Promise.all([refold.close(), plain.close()]);
    return [
      {
        scenario: appendStreams.name,
        unit: 'events/s',
        better: 'more',
        refold: figures.refold ?? [],
        limit: figures.limit,
        limitName: `INSERT of ${streamsOfCall} rows and commit`,
        target: {},
      },
    ];
  },
};
