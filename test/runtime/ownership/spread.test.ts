import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineConfig, defineProjection, t } from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { type RegisteredVersion, readRegistry } from '../../../src/store/registry/registry.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { account, balanceV1, balanceV2, openingsV1, talliesOf } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses } from '../../support/worker-processes.ts';

describe.each(['advisory', 'lease'] as const)('work spread over processes, ownership by %s', (ownership) => {
  const workers = createWorkerProcesses();
  const tallies = 6;
  let database: TestDatabase;
  let db: Database;
  let log: EventLog;

  beforeAll(async () => {
    database = await createTestDatabase();
    db = createDatabase({ url: database.url });
    log = createEventLog(db, [account]);
  });
  afterAll(async () => {
    await workers.killAll();
    await db.close();
    await database.drop();
  });

  /** Only killed processes have short leases: a process that stalls for longer than its lease loses its units. */
  const start = (owner: string, leaseSeconds = 60) =>
    workers.start({
      url: database.url,
      owner,
      tallies,
      runtime: ownership === 'lease' ? { ownership, leaseSeconds } : {},
    });
  const shortLease = 3;

  /** Waits until these processes own everything, each that many units. */
  function spreadAs(shares: Readonly<Record<string, number>>): Promise<unknown> {
    return until(async () => {
      const owned = Map.groupBy(await readRegistry(db), ({ owner }) => owner);
      return (
        owned.size === Object.keys(shares).length &&
        Object.entries(shares).every(([owner, share]) => owned.get(owner)?.length === share)
      );
    });
  }

  /** Waits until these two own everything, as evenly as nine units allow. */
  function sharedByTwo(): Promise<unknown> {
    return until(async () => {
      const owners = Map.groupBy(await readRegistry(db), ({ owner }) => owner);
      const shares = [owners.get('first')?.length ?? 0, owners.get('second')?.length ?? 0];
      return shares.includes(4) && shares.includes(5);
    });
  }

  async function epochs(): Promise<unknown[]> {
    return db.query({ text: 'select name, version, partition, epoch, owner from refold.processors order by 1, 2, 3' });
  }

  /** Waits until every live process has computed its share a few times more. */
  async function looks(): Promise<void> {
    const heartbeats = () =>
      db.query<{ id: string; at: string }>({
        text: `select id::text as id, heartbeat_at as at from refold.processes where name <> 'victim'`,
      });
    for (let look = 0; look < 2; look++) {
      const before = new Map((await heartbeats()).map(({ id, at }) => [id, at]));
      await until(async () => (await heartbeats()).every(({ id, at }) => at !== before.get(id)));
    }
  }

  test('follows the processes that start and stop, and is stable in between', async () => {
    await traffic(log, 2_000, seeded(1));
    await start('first');
    await spreadAs({ first: 9 });
    await start('second');
    await spreadAs({ first: 5, second: 4 });
    const third = await start('third');
    await spreadAs({ first: 3, second: 3, third: 3 });

    const resting = await epochs();
    await traffic(log, 500, seeded(2));
    await looks();
    expect(await epochs()).toEqual(resting);

    await third.end('SIGTERM');
    await sharedByTwo();
    const taken = await epochs();
    await looks();
    expect(await epochs()).toEqual(taken);
  });

  test('the units of a killed process are taken over evenly by the others', async () => {
    const victim = await start('victim', shortLease);
    await spreadAs({ first: 3, second: 3, victim: 3 });
    await victim.end('SIGKILL');
    await sharedByTwo();
    const taken = await epochs();
    await looks();
    expect(await epochs()).toEqual(taken);
  });

  test('every table stays equal to one fold of the log while processes start and stop at random', async () => {
    console.info(`seed ${seed}`);
    const random = seeded(seed);
    const guests = new Map<string, Awaited<ReturnType<typeof start>>>();
    for (let round = 0; round < effort(6, 4); round++) {
      await traffic(log, 200, random);
      const [leaving] = guests.keys();
      if (leaving !== undefined && random() < 0.6) {
        await guests.get(leaving)?.end(random() < 0.5 ? 'SIGTERM' : 'SIGKILL');
        guests.delete(leaving);
      } else guests.set(`guest-${round}`, await start(`guest-${round}`, shortLease));
      await traffic(log, 200, random);
      const horizon = await log.horizon();
      await until(async () => (await readRegistry(db)).every(({ checkpoint }) => checkpoint >= horizon));
    }
    for (const projection of [balanceV1, balanceV2, openingsV1, ...talliesOf(tallies)]) {
      expect(await storedTable(db, projection), `${projection.id}, seed ${seed}`).toEqual(
        await foldedTable(log, projection),
      );
    }
  }, 900_000); // as kill.test.ts
});

describe('participation in the spread', () => {
  let database: TestDatabase;
  let db: Database;
  let log: EventLog;
  const stops: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    db = createDatabase({ url: database.url });
    log = createEventLog(db, [account]);
  });
  afterAll(async () => {
    for (const stop of stops) await stop();
    await db.close();
    await database.drop();
  });

  const delicate = defineProjection({
    name: 'delicate',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text() },
    key: (event) => event.streamId,
    evolve: {
      Opened: (_, event) => {
        if (event.payload.owner === 'poison') throw new Error('too much');
        return { owner: event.payload.owner };
      },
    },
  });

  async function startOne(owner: string, maintain = true) {
    const runtime = await startRuntime({
      config: defineConfig({ projections: [delicate, balanceV1, ...talliesOf(2)] }),
      url: database.url,
      owner,
      development: false,
      maintain,
      logger: pino({ level: 'silent' }),
    });
    stops.push(() => runtime.stop());
    return runtime;
  }

  const owners = async () =>
    Object.fromEntries((await readRegistry(db)).map(({ name, owner }: RegisteredVersion) => [name, owner]));

  test('a process that only answers clients owns no units, and leaves a stopped unit where it is', async () => {
    await startOne('gateway', false);
    await startOne('one');
    await until(async () => Object.values(await owners()).every((owner) => owner === 'one'));
    await log.append({
      family: account,
      streamId: 'a',
      events: [{ type: 'Opened', payload: { owner: 'poison' } }],
    });
    await until(async () => (await readRegistry(db)).some(({ status }) => status === 'stopped'));
    await startOne('two');
    await until(async () => Object.values(await owners()).filter((owner) => owner === 'two').length === 2);
    expect(await owners()).toMatchObject({ delicate: 'one' });
    expect((await readRegistry(db)).find(({ name }) => name === 'delicate')).toMatchObject({ status: 'stopped' });
    expect(
      (await db.query<{ name: string }>({ text: 'select name from refold.processes' })).map(({ name }) => name).sort(),
    ).toEqual(['one', 'two']);
  });
});
