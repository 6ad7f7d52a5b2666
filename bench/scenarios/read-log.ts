import { beginning, type GlobalPosition } from '../../src/index.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { copyRows } from '../../src/store/postgres/copy-rows.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { createCartLog } from '../cart-log.ts';
import { cart } from '../carts.ts';
import { check } from '../check.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const atLeastEvents = 100_000; // a figure for a short log takes many reads

/** Reads a whole log page by page, as projections do, at several lengths: the pace must not depend on the length. */
export const readLog: Scenario = {
  name: 'read-log',
  async run({ server, rounds, longLog }) {
    const long = await longLog();
    const short = await createCartLog(server, 'bench_short_log', 10_000, 500);
    const databases = { long: createDatabase({ url: long.url }), short: createDatabase({ url: short.url }) };
    const turn = (read: () => Promise<number>, events: number) => async () => {
      const start = performance.now();
      let found = 0;
      while (found < atLeastEvents) found += await read();
      check(found % events === 0, () => `${found} events read of a log of ${events}`);
      return found / ((performance.now() - start) / 1000);
    };
    const figures = await inTurn(rounds, {
      long: turn(() => readAll(databases.long), long.events),
      short: turn(() => readAll(databases.short), short.events),
      copy: turn(() => copyAll(databases.long), long.events),
    });
    for (const db of Object.values(databases)) await db.close();
    const common = { unit: 'events/s', better: 'more', refold: figures.long ?? [] } as const;
    return [
      { ...common, scenario: 'read-log', limit: figures.copy, limitName: 'COPY of the same columns', target: {} },
      {
        ...common,
        scenario: 'read-log-flat',
        limit: figures.short,
        limitName: 'a log of 10,000',
        target: { toLimit: 0.77 }, // flat within 1.3
      },
    ];
  },
};

async function readAll(db: ReturnType<typeof createDatabase>): Promise<number> {
  const log = createEventLog(db, [cart]);
  const upTo = await log.horizon();
  let found = 0;
  for (let after: GlobalPosition = beginning; after < upTo; ) {
    const page = await log.readAll({ after, upTo, limit: 5000 });
    found += page.events.length;
    after = page.upTo;
  }
  return found;
}

async function copyAll(db: ReturnType<typeof createDatabase>): Promise<number> {
  let found = 0;
  const columns =
    'position, stream_position, recorded_at, id, payload_version, family, stream_id, type, metadata, payload';
  await copyRows(db, `select ${columns} from refold.events order by position`, () => ++found > 0);
  return found;
}
