import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineImport } from '../../../src/index.ts';
import { type ImportProgress, importEvents } from '../../../src/runtime/commands/import-events.ts';
import { createImportPace } from '../../../src/runtime/commands/import-pace.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { account } from '../../support/sample-domain.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

const openings = defineImport({
  name: 'openings',
  async *toAppends(lines) {
    for await (const { text: id } of lines)
      yield {
        family: account,
        streamId: id,
        events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
        idempotencyKey: id,
      };
  },
});
const ids = Array.from({ length: 4_000 }, (_, index) => `account-${index}`);

let folder: string;
let database: TestDatabase;
let db: Database;
let log: EventLog;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refold-import-'));
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account]);
});
afterAll(async () => {
  await db.close();
  await database.drop();
  await rm(folder, { recursive: true });
});

test('an import waits for a database that was lost in the middle, and writes nothing twice', async () => {
  const proxy = await startTcpProxy(Number(new URL(database.url).port));
  const far = createDatabase({ url: proxy.through(database.url) });
  const file = join(folder, 'lost.txt');
  await writeFile(file, ids.map((id) => `lost-${id}`).join('\n'));
  const told: string[] = [];
  const isAppend = (chunk: Buffer) => chunk.includes('lost-account-2');
  const cut = proxy.cutAfter(isAppend); // it is written, but its response is lost
  const result = await importEvents({
    db: far,
    log: createEventLog(far, [account]),
    definition: openings,
    file,
    onOutage: ({ kind }) => void told.push(kind),
  });
  await cut;
  expect(told).toEqual(['waiting', 'going on']);
  expect(result.written + result.skipped).toBe(4_000);
  expect(result.skipped).toBeGreaterThan(0);
  const text = `select count(*)::int as events from refold.events where stream_id like 'lost-%'`;
  expect(await db.query({ text })).toEqual([{ events: 4_000 }]);

  // The import gives up in the end, and the error names the way out.
  await proxy.close();
  await expect(
    importEvents({ db: far, log: createEventLog(far, [account]), definition: openings, file, outageTimeoutMs: 0 }),
  ).rejects.toThrow(/The database was not available for 0 s\. .* What was written stays; run the import again/);
  await far.close();
});

/** Imports a file of these lines; also returns what was sent. */
async function imported(lines: readonly string[]) {
  const file = join(folder, 'ids.txt');
  await writeFile(file, lines.join('\n'));
  let sent = 0;
  const counting: Pick<EventLog, 'appendInOrder'> = {
    appendInOrder(requests) {
      sent += requests.length;
      return log.appendInOrder(requests);
    },
  };
  const told: ImportProgress[] = [];
  const onProgress = (progress: ImportProgress) => void told.push(progress);
  const result = await importEvents({ db, log: counting, definition: openings, file, onProgress });
  return { sent, told, result };
}

test('a repeated import skips ranges that are in the log, and shows no rate and no ETA for them', async () => {
  const first = await imported(ids);
  expect(first).toMatchObject({ sent: 4_000, result: { written: 4_000, skipped: 0, secondsLeft: 0 } });
  expect(first.told.every(({ eventsPerSecond }) => eventsPerSecond !== null)).toBe(true);

  const repeat = await imported(ids);
  expect(repeat).toMatchObject({ sent: 0, result: { written: 0, skipped: 4_000, lines: 4_000 } });
  expect(repeat.told.map(({ eventsPerSecond, secondsLeft }) => [eventsPerSecond, secondsLeft])).toEqual(
    repeat.told.map(() => [null, null]),
  );

  // After a line is added in the middle, only its neighbours are sent; after one is added at the end, only the last lines.
  const longer = await imported([...ids.slice(0, 1_000), 'new-1', ...ids.slice(1_000), 'new-2']);
  expect(longer.result).toMatchObject({ written: 2, skipped: 4_000 });
  expect(longer.sent).toBeLessThan(4_000);

  // After keys were deleted by hand, the recorded ranges are no longer valid.
  await database.administer('truncate refold.append_keys');
  expect(await imported(ids)).toMatchObject({ sent: 4_000, result: { written: 4_000, skipped: 0 } });
});

test('the pace of an import counts only what it has written recently', () => {
  let now = 0;
  const pace = createImportPace(() => now);
  const after = (seconds: number, written: number, bytesRead: number) => {
    now += seconds * 1000;
    pace.done({ written, bytesRead });
    return [pace.eventsPerSecond(), pace.secondsLeft(10_000)];
  };
  expect(after(0.001, 0, 4_000)).toEqual([null, null]);
  expect(after(2, 1_000, 5_000)).toEqual([500, 10]);
  // Skipped lines shorten the remaining work, but do not predict the pace of the rest.
  expect(after(0.001, 0, 8_000)).toEqual([500, 4]);
  expect(after(4, 1_000, 9_000)).toEqual([2_000 / 6, 3]);
  for (let range = 0; range < 32; range++) after(1, 100, 9_000 + range);
  expect(pace.eventsPerSecond()).toBe(100);
});
