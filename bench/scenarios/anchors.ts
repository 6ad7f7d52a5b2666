import { createCartLog } from '../cart-log.ts';
import { check } from '../check.ts';
import { openClient } from '../open-client.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const events = 100_000;
const streams = 5000;

/** What it costs to anchor a position to the event that stands there: at each look at the head of the log, and with each checkpoint. */
export const anchors: Scenario = {
  name: 'anchors',
  fullOnly: true,
  async run({ server, quick, rounds }) {
    const calls = quick ? 1000 : 10_000;
    const log = await createCartLog(server, 'bench_anchors', events, streams);
    const client = await openClient(log.url);

    /** The mean time of one prepared statement, one after the other, in µs. */
    async function timeOf(name: string, text: string): Promise<number> {
      const start = performance.now();
      for (let call = 0; call < calls; call++) {
        const { rows } = await client.query<{ value: unknown }>({ name, text, values: [events - (call % 1000)] });
        check(rows[0]?.value !== null, () => `${name} found nothing`);
      }
      return ((performance.now() - start) * 1000) / calls;
    }

    const head = await inTurn(rounds, {
      refold: () => timeOf('head', 'select known_anchor as value from refold.read_head($1)'),
      limit: () => timeOf('horizon', 'select refold.horizon() as value, refold.server_start(), $1::bigint'),
    });
    const checkpoint = await inTurn(rounds, {
      refold: () => timeOf('checkpoint', 'select refold.checkpoint_anchor($1) as value'),
      limit: () => timeOf('number', 'select $1::bigint as value'),
    });
    const previous = `($1 - 10) || '.9f3c21ab.0.10.0.10.0.1'`;
    const ofStore = await inTurn(rounds, {
      refold: () =>
        timeOf(
          'ofStore',
          `select refold.next_checkpoint_anchor(${previous}, $1 - 10, $1) as value, refold.server_start()`,
        ),
      limit: () => timeOf('anchor', 'select refold.anchor($1) as value, refold.server_start()'),
    });
    await client.end();
    const measure = {
      unit: 'µs',
      better: 'less',
      limitName: 'the same statement without anchors',
      target: {},
    } as const;
    return [
      { ...measure, scenario: 'anchors-of-the-head', refold: head.refold ?? [], limit: head.limit },
      { ...measure, scenario: 'anchor-of-a-checkpoint', refold: checkpoint.refold ?? [], limit: checkpoint.limit },
      {
        ...measure,
        scenario: 'anchor-of-a-checkpoint-in-a-store',
        limitName: 'one anchor',
        refold: ofStore.refold ?? [],
        limit: ofStore.limit,
      },
    ];
  },
};
