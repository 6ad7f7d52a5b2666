import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import { keyText, type RowKey } from '../../../src/projections/projection/projection.ts';
import { createPositions } from '../../../src/runtime/reads/positions.ts';
import type { LiveListQuery, LiveReadModels } from '../../../src/schema/contract/operation-context.ts';
import { sorted } from '../../store/queries/naive-rows.ts';
import { filtersOf, ordersOf, rowsOf, shelfPlaces } from '../../store/queries/order-book.ts';
import { effort } from '../../support/effort.ts';
import { createReadModelWriter, type ReadModelWriter } from '../../support/read-model-writer.ts';
import { deaf, type LiveSetting, often, until } from './live-setting.ts';
import { replicateList, replicateRow } from './replicas.ts';

let setting: LiveSetting;
let writer: ReadModelWriter;

const columns = Object.keys(shelfPlaces.columns);
// Few keys, so rows are written repeatedly, leave and return.
const keys = ['a', 'b', 'c', 'd', 'e', 'f'].map((shop) => [shop, 1, '2026-01-31']);
const rows = rowsOf(shelfPlaces, { maxLength: 4 }).chain((some) =>
  fc
    .shuffledSubarray(keys, { minLength: some.length, maxLength: some.length })
    .map((picked) =>
      some.map((row, index): Row => ({ ...row, shop: picked[index]?.[0], shelf: 1, day: '2026-01-31' })),
    ),
);
const batches = fc
  .record({ upserted: rows, deleted: fc.subarray(keys, { maxLength: 2 }) })
  .map(({ upserted, deleted }) => ({
    upserted: upserted.filter((row) => !deleted.some(([shop]) => shop === row.shop)),
    deleted,
  }));
const lists: fc.Arbitrary<LiveListQuery> = fc.record({
  where: filtersOf(shelfPlaces),
  orderBy: ordersOf(shelfPlaces),
  first: fc.integer({ min: 1, max: 6 }),
  columns: fc.constant(columns),
});
const subscribers = fc.record({
  what: fc.oneof(fc.record({ key: fc.constantFrom(...keys) }), fc.record({ list: lists })),
  /** Subscribes after so many batches. */
  after: fc.nat({ max: 12 }),
  /** Round trips to the database between two messages. */
  pause: fc.constantFrom(0, 0, 1, 3, 10, 30),
});
const plays = fc.record({
  batches: fc.array(batches, { minLength: 1, maxLength: 12 }),
  subscribers: fc.array(subscribers, { minLength: 1, maxLength: 6 }),
});

/** What every subscriber of rows and lists sees, in whatever database the rows are. Called at the top of a file. */
export function everySubscriber(create: () => Promise<LiveSetting>): void {
  beforeAll(async () => {
    setting = await create();
    writer = await createReadModelWriter(setting.db, shelfPlaces);
    setting.stage.serve(shelfPlaces);
  });

  afterAll(() => setting.close());

  test.each([
    ['notified', () => setting.live],
    [
      'polling, without a pipeline',
      () => {
        const positions = createPositions({ ...deafOptions(), db: setting.db });
        return setting.another({ db: setting.db, positions, polling: often });
      },
    ],
    ['changes pruned at once', () => setting.another({ changesKept: -1 })],
  ])('every subscriber ends with the rows of the table, for any writes and any speed: %s', async (_, open) => {
    const live = open();
    await fc.assert(
      fc.asyncProperty(plays, async (play) => {
        await writer.write({ deleted: keys });
        const table = new Map<string, Row>();
        const playing: Playing[] = [];
        const startAt = (index: number) => {
          for (const { what, after, pause } of play.subscribers) {
            if (Math.min(after, play.batches.length) === index)
              playing.push(subscribe(live, what, table, () => trips(pause)));
          }
        };
        for (const [index, batch] of play.batches.entries()) {
          startAt(index);
          await writer.write(batch);
          for (const row of batch.upserted) table.set(keyText([row.shop, row.shelf, row.day]), row);
          for (const key of batch.deleted) table.delete(keyText(key));
        }
        startAt(play.batches.length);
        await until(() => playing.every((one) => one.settled()));
        for (const one of playing) await one.stop();
        expect(playing.flatMap((one) => one.replica.problems)).toEqual([]);
        expect(live.subscriptions).toBe(0);
      }),
      { numRuns: effort(40, 10), interruptAfterTimeLimit: 240_000, markInterruptAsFailure: true },
    );
    expect(setting.errors).toEqual([]);
  });
}

interface Playing {
  readonly replica: { readonly problems: readonly string[] };
  /** Whether the subscriber knows what the table holds. */
  settled(): boolean;
  stop(): Promise<void>;
}

type What = { readonly key: RowKey } | { readonly list: LiveListQuery };

function subscribe(
  live: LiveReadModels,
  what: What,
  table: ReadonlyMap<string, Row>,
  pause: () => Promise<void>,
): Playing {
  if ('key' in what) {
    const messages = live.row(shelfPlaces, what.key, columns, { after: null });
    const replica = replicateRow(messages, pause);
    const settled = () => isDeepStrictEqual(replica.state, table.get(keyText(what.key)) ?? null);
    return { replica, settled, stop: () => end(messages, replica.ended) };
  }
  const { list } = what;
  const messages = live.list(shelfPlaces, list, { after: null });
  const replica = replicateList(shelfPlaces, messages, pause);
  const settled = () => {
    const window = sorted(shelfPlaces, [...table.values()], list).slice(0, list.first);
    // By the places of its messages alone: the client sorts nothing.
    return isDeepStrictEqual(replica.state && [...replica.state.values()], window);
  };
  return { replica, settled, stop: () => end(messages, replica.ended) };
}

async function end(messages: AsyncIterator<unknown>, ended: Promise<void>): Promise<void> {
  await messages.return?.();
  await ended;
}

async function trips(count: number): Promise<void> {
  for (let trip = 0; trip < count; trip++) await setting.db.query({ text: 'select' });
}

function deafOptions() {
  return { notifications: deaf, timeout: 300_000, head: async () => 0n as never };
}
