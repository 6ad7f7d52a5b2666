import { type AppendLog, checkInlineRows, checkLog, openInlineLog } from '../append-log.ts';
import { appendTurn } from '../append-turn.ts';
import { cart, cartSummaryInline, itemAdded } from '../carts.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const callers = 32;

/** The same append with one inline projection and without. Events a second. */
export const appendInline: Scenario = {
  name: `append-inline-1x${callers}`,
  async run(context) {
    const inline = await openInlineLog(context.server, [cartSummaryInline]);
    const plain = await openInlineLog(context.server, []);
    const calls = { inline: 0, plain: 0 };
    const turn = (kind: keyof typeof calls, { log }: AppendLog) =>
      appendTurn(context, callers, (caller) => {
        const streamId = `cart-${caller}-${Math.floor(calls[kind]++ / 10)}`;
        return log.append({ family: cart, streamId, events: [itemAdded] });
      });
    const figures = await inTurn(context.rounds, { refold: turn('inline', inline), limit: turn('plain', plain) });

    await checkLog(inline, calls.inline);
    await checkInlineRows(inline);
    await checkLog(plain, calls.plain);
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
