import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { startCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { account } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { applicationFile } from './application-file.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account]);
  for (const streamId of ['a', 'b'])
    await log.append({
      family: account,
      streamId,
      events: [
        { type: 'Opened', payload: { owner: `owner of ${streamId}` } },
        { type: 'Credited', payload: { amount: '7' } },
      ],
      metadata: { correlationId: `request-${streamId}`, actor: 'ada' },
    });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const environment = () => ({ DATABASE_URL: database.url });
const declared = 'export default defineConfig({ events: [account] });';

async function refold(...cliArguments: string[]) {
  return runCliHere([...cliArguments, '--config', await applicationFile(declared)], environment());
}

async function listed(...cliArguments: string[]): Promise<string[]> {
  const { stdout, stderr } = await refold('events', 'list', ...cliArguments, '--json');
  expect(stderr).toBe('');
  return JSON.parse(stdout).events.map(({ position }: { position: string }) => position);
}

test('events are listed by stream, type, position, time and correlation id, without payloads unless asked', async () => {
  const all = await refold('events', 'list');
  expect(all.stdout).toMatch(
    /^position +recorded +event +stream +number +correlation\n +1 +\S+Z +Opened +account\/a +1 +request-a\n/,
  );
  expect(all.stdout).not.toContain('owner of');
  expect((await refold('events', 'list', '--payload')).stdout).toContain('{"owner":"owner of a"}');
  expect(await listed('account/b')).toEqual(['3', '4']);
  expect(await listed('--type', 'Opened')).toEqual(['1', '3']);
  expect(await listed('--type', 'account.Credited,Opened', '--from', '2', '--to', '3')).toEqual(['2', '3']);
  expect(await listed('--correlation', 'request-a')).toEqual(['1', '2']);
  expect(await listed('--since', '1h')).toHaveLength(4);
  expect(await listed('--until', '2026-01-01')).toEqual([]);
});

test('a list that is cut says where it goes on', async () => {
  expect((await refold('events', 'list', '--limit', '2')).stdout).toMatch(/There are earlier ones: --to 2\n$/);
  expect(await listed('--to', '2')).toEqual(['1', '2']);
  const forward = await refold('events', 'list', '--limit', '2', '--from', '1');
  expect(forward.stdout).toMatch(/There are later ones: --from 3\n$/);
  const json = await refold('events', 'list', '--limit', '2', '--from', '1', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ earlier: null, later: '3', events: [{ type: 'Opened' }, {}] });
});

test('one event is shown as the log keeps it', async () => {
  const { stdout } = await refold('events', 'show', '3');
  expect(stdout).toMatch(/^position +3\nevent +Opened\n/);
  expect(stdout).toContain('stream          account/b, event 1\n');
  expect(stdout).toContain('"owner": "owner of b"');
  expect(JSON.parse((await refold('events', 'show', '3', '--json')).stdout)).toMatchObject({
    position: '3',
    payload: { owner: 'owner of b' },
    metadata: { actor: 'ada', correlationId: 'request-b' },
  });
});

test.each([
  [['show', '99'], 'The log has no event at position 99: it ends at 4 so far.'],
  [['show', 'x'], "POSITION: Expected a global position (a decimal string such as '1042'), found 'x'."],
  [['list', 'a'], "'a' is not a stream; write it like shopping_cart/c1."],
  [['list', 'acount/a'], "Neither the application nor the log has an event family 'acount'. Did you mean 'account'?"],
  [['list', '--limit', '0'], "--limit is a whole number from 1 to 100000, found '0'."],
  [
    ['list', '--since', '2026-01-31T12:00:00'],
    "--since is a time with its zone, such as 2026-01-31T12:00:00Z, a day (in UTC), or an age such as 15m, 2h or 3d; found '2026-01-31T12:00:00'.",
  ],
  [
    ['list', '--type', 'Opend'],
    "Neither the application nor the log has an event type 'Opend'. Did you mean 'Opened'? Write it like Opened, account.Opened or account.*.",
  ],
])('refold events %j is refused', async (cliArguments, message) => {
  expect(await refold('events', ...cliArguments)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: `refold: ${message}\n`,
  });
});

test('a tail shows the latest events, and follows new ones that match in their order', async () => {
  expect((await refold('events', 'tail', '--limit', '1')).stdout).toMatch(
    /^4 {2}\S+Z {2}Credited {2}account\/b {2}2 {2}request-b\n$/,
  );
  const config = await applicationFile(declared);
  const tail = startCli(['events', 'tail', 'account/c', '--follow', '--json', '--config', config], {
    env: environment(),
  });
  const credited = (streamId: string) =>
    log.append({ family: account, streamId, events: [{ type: 'Credited', payload: { amount: '1' } }] });
  for (let count = 0; count < 3; count++) {
    await credited('c');
    await credited('d');
  }
  await tail.prints(/(.*\n){3}/);
  const shown = tail.printed.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(shown.map((event) => [event.streamId, event.streamPosition])).toEqual([
    ['c', '1'],
    ['c', '2'],
    ['c', '3'],
  ]);
  expect(await tail.end('SIGTERM')).toMatchObject({ code: 143, stderr: '' });
});
