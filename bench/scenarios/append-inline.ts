import { type AppendLog, checkInlineRows, checkLog, openInlineLog } from '../append-log.ts';
import { appendTurn } from '../append-turn.ts';
import { cart, cartSummaryInline, itemAdded } from '../carts.ts';
import { createOwnStreams, type OwnStreams } from '../own-streams.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const callers = 32;

/** The same append with one inline projection and without. Events per second. */
export const appendInline: Scenario = {
  name: `append-inline-1x${callers}`,
  async run(context) {
    const inline = await openInlineLog(context.server, [cartSummaryInline]);
    const plain = await openInlineLog(context.server, []);
    const streams = { inline: createOwnStreams(), plain: createOwnStreams() };
    const turn = ({ log }: AppendLog, { next }: OwnStreams) =>
      appendTurn(context, callers, (caller) =>
        log.append({ family: cart, streamId: next(caller), events: [itemAdded] }),
      );
    const figures = await inTurn(context.rounds, {
      refold: turn(inline, streams.inline),
      limit: turn(plain, streams.plain),
    });

    await checkLog(inline, streams.inline.calls);
    await checkInlineRows(inline);
    await checkLog(plain, streams.plain.calls);
    await Promise.all([inline.close(), plain.close()]);
    return [
      {
        scenario: appendInline.name,
        unit: 'events/s',
        better: 'more',
        refold: figures.refold ?? [],
        limit: figures.limit,
        limitName: 'the same append without an inline projection',
        target: { toLimit: 0.6 },
      },
    ];
  },
};
