import { afterEach, describe, expect, test } from 'vitest';
import { defineConfig, defineProjection, type Projection, t } from '../../../src/index.ts';
import { cancelRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { readAllRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { seeded, traffic, underTraffic } from '../../support/account-traffic.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { type Place, settingOfEachTest } from '../../support/runtime-setting.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';

/** One way to rebuild a version's table. */
export interface RebuildForm {
  /** Starts with the rows of a snapshot that is taken half-way. */
  readonly bounded: boolean;
  readonly inPlace: boolean;
  ask(runtime: Pick<Runtime, 'db' | 'log'>, projection: Projection, actor?: string): Promise<unknown>;
}

/** What every form of a rebuild guarantees. */
export function rebuildContract(name: string, form: RebuildForm, place: Place = 'together'): void {
  describe(`a rebuild ${name}${place === 'apart' ? ', in another database' : ''}`, () => {
    const setting = settingOfEachTest(place);
    const { stop } = setting;
    const workers = createWorkerProcesses();

    afterEach(() => workers.killAll());

    function start(projections: readonly Projection[], maintain = true): Promise<Runtime> {
      return setting.start(defineConfig({ projections, runtime: { pageSize: 100 } }), { maintain });
    }

    test('leaves the table equal to one fold of the log, under traffic, for any earlier content', async () => {
      const random = seeded(7);
      const runtime = await start([balanceV1, balanceV2]);
      await traffic(runtime.log, 1_000, random);
      await caughtUp(runtime);
      if (form.bounded) await snapshotOf(runtime, balanceV1);
      await traffic(runtime.log, 500, random);
      await caughtUp(runtime);
      await spoil(runtime, balanceV1);
      let rebuilding = true;
      const live = (async () => {
        while (rebuilding) await traffic(runtime.log, 20, random);
      })();
      await form.ask(runtime, balanceV1);
      await until(async () => (await readAllRebuilds(runtime.db)).length === 0);
      rebuilding = false;
      await live;
      await caughtUp(runtime);
      await expectTrue(runtime, balanceV1);
      await expectTrue(runtime, balanceV2);
      expect(await states(runtime)).toEqual(['balance@1 active', 'balance@2 active']);
    });

    test('that is run a second time folds every event again', async () => {
      const runtime = await start([balanceV1]);
      await history(runtime, 11);
      await caughtUp(runtime);
      if (form.bounded) await snapshotOf(runtime, balanceV1);
      await history(runtime, 10);
      await caughtUp(runtime);
      for (const _ of ['first', 'second', 'third']) {
        await spoil(runtime, balanceV1);
        await form.ask(runtime, balanceV1);
        await until(async () => (await readAllRebuilds(runtime.db)).length === 0);
        expect(await eventsFolded(runtime)).toBe(form.bounded ? 10 : 21);
        await expectTrue(runtime, balanceV1);
      }
    });

    test('sends subscribers the rows of the new table', async () => {
      const runtime = await start([balanceV1]);
      await runtime.log.append({
        family: account,
        streamId: 'a',
        events: [
          { type: 'Opened', payload: { owner: 'Ada' } },
          { type: 'Credited', payload: { amount: '1' } },
        ],
      });
      await caughtUp(runtime);
      if (form.bounded) await snapshotOf(runtime, balanceV1);
      await spoil(runtime, balanceV1);
      const rows = runtime.live.row(balanceV1, ['a'], ['movements'], { after: null });
      const movements = async () => (await rows.next()).value?.row?.movements;
      expect(await movements()).toBe(1001);
      await form.ask(runtime, balanceV1);
      expect(await movements()).toBe(1);
      await rows.return?.();
    });

    test('that ended half-way continues from there when it is started again', async () => {
      const upTo = (last: number) =>
        defineProjection({
          name: 'credits',
          version: 1,
          events: account,
          table: { accountId: t.text().primaryKey(), credits: t.integer() },
          key: (event) => event.streamId,
          evolve: {
            Credited: (row, event) => {
              if (event.position > BigInt(last)) throw new Error(`no further than ${last}`);
              return { credits: (row?.credits ?? 0) + 1 };
            },
          },
        });
      const whole = upTo(20);
      const before = await start([whole]);
      await credits(before, 5);
      await caughtUp(before);
      if (form.bounded) await snapshotOf(before, whole);
      await credits(before, 15);
      await caughtUp(before);
      await stop(before);
      const broken = await start([upTo(10)], false);
      await form.ask(broken, upTo(10));
      await stop(broken);
      const halted = await start([upTo(10)]);
      await until(async () => (await readAllRebuilds(halted.db))[0]?.status === 'stopped');
      const [rebuild] = await readAllRebuilds(halted.db);
      expect([rebuild?.checkpoint, rebuild?.eventsFolded]).toEqual([10n, form.bounded ? 5n : 10n]);
      await stop(halted);
      const runtime = await start([whole]);
      await until(async () => (await readAllRebuilds(runtime.db)).length === 0);
      await expectTrue(runtime, whole);
      expect(await eventsFolded(runtime)).toBe(form.bounded ? 15 : 20);
    });

    test('runs one at a time: the first request wins, and the others fail with its requester', async () => {
      const runtime = await start([balanceV1]);
      await history(runtime, 10);
      await caughtUp(runtime);
      if (form.bounded) await snapshotOf(runtime, balanceV1);
      await stop(runtime);
      const idle = await start([balanceV1], false);
      const asked = await Promise.allSettled(
        ['ann', 'bob', 'cat', 'dan'].map((actor) => form.ask(idle, balanceV1, actor)),
      );
      const [rebuild] = await readAllRebuilds(idle.db);
      const refusals = asked.flatMap((request) => (request.status === 'rejected' ? [request.reason.message] : []));
      expect(refusals).toHaveLength(3);
      for (const message of refusals)
        expect(message).toBe(
          `balance@1 is being rebuilt already: ${rebuild?.requestedBy} asked for it at ${rebuild?.requestedAt} (a try); nobody yet works on it.`,
        );
      const again = await start([balanceV1]);
      await until(async () => (await readAllRebuilds(again.db)).length === 0);
      await expectTrue(again, balanceV1);
    });

    test('that is requested with a differently declared table is refused: no deployed process could fill it', async () => {
      const runtime = await start([recoded('deployed')]);
      await credits(runtime, 5);
      await caughtUp(runtime);
      if (form.bounded) await snapshotOf(runtime, recoded('deployed'));
      const ahead = defineProjection({
        name: 'credits',
        version: 1,
        events: account,
        table: { accountId: t.text().primaryKey(), credits: t.integer(), last: t.text() },
        key: (event) => event.streamId,
        evolve: { Credited: (row, { id }) => ({ credits: (row?.credits ?? 0) + 1, last: id }) },
      });
      await expect(form.ask(runtime, ahead)).rejects.toThrow(
        'credits@1: its table is declared here differently from the one in the database, which deployed processes still use.',
      );
      expect(await readAllRebuilds(runtime.db)).toEqual([]);
      await credits(runtime, 5);
      await caughtUp(runtime);
      expect(await states(runtime)).toEqual(['credits@1 active']);
      await expectTrue(runtime, recoded('deployed'));
    });

    test('records in the registry the code of the process that ran it, which may differ from that of the requester', async () => {
      const deployed = recoded('deployed');
      const runtime = await start([deployed]);
      await credits(runtime, 5);
      await caughtUp(runtime);
      if (form.bounded) await snapshotOf(runtime, deployed);
      await form.ask(runtime, recoded('mended'));
      await until(async () => (await readAllRebuilds(runtime.db)).length === 0);
      expect((await readRegistry(runtime.db))[0]?.codeFingerprint).toBe(deployed.codeFingerprint);
    });

    test(`that is cancelled ${form.inPlace ? 'continues, because its old rows are gone' : 'leaves everything unchanged'}`, async () => {
      const runtime = await start([balanceV1]);
      await history(runtime, 10);
      await caughtUp(runtime);
      if (form.bounded) await snapshotOf(runtime, balanceV1);
      await stop(runtime);
      const idle = await start([balanceV1], false);
      await form.ask(idle, balanceV1);
      const cancelling = cancelRebuild(idle.db, 'balance', 1, 'read_models', { actor: 'ann', reason: 'not now' });
      if (form.inPlace) {
        await expect(cancelling).rejects.toThrow(
          "balance@1 is being rebuilt in place: its old rows are gone, so there is nothing to go back to. It goes on by itself, also after a crash and with fixed code; 'refold status' shows how far it is.",
        );
      } else {
        await cancelling;
        expect(await readAllRebuilds(idle.db)).toEqual([]);
        await idle.versions.refresh();
        expect(idle.versions.stored(balanceV1).tableName).toBe('balance_v1');
      }
      const again = await start([balanceV1]);
      await until(async () => (await readAllRebuilds(again.db)).length === 0);
      await until(
        async () =>
          form.inPlace ||
          (await again.db.query({ text: `select from pg_tables where tablename = 'balance_v1_g2'` })).length === 0,
      );
      await expectTrue(again, balanceV1);
      await form.ask(again, balanceV1);
      await until(async () => (await readAllRebuilds(again.db)).length === 0);
      await expectTrue(again, balanceV1);
    });

    test('by processes that are killed at random points leaves every table equal to one fold of the log', async () => {
      console.info(`seed ${seed}`);
      const random = seeded(seed);
      const observer = await start([balanceV1, balanceV2, openingsV1], false);
      await traffic(observer.log, 1_500, random);
      const names = new Map<string, WorkerProcess>();
      const { database, storeUrl } = setting;
      const where = storeUrl === undefined ? {} : { storeUrl };
      const join = async (owner: string) =>
        names.set(owner, await workers.start({ url: database.url, owner, ...where }));
      await join('worker-0');
      await caughtUp(observer);
      if (form.bounded) await snapshotOf(observer, balanceV1);
      let asked = 0;
      await underTraffic(
        observer.log,
        random,
        async (head) =>
          (await readRegistry(observer.db)).every(
            ({ checkpoint, state }) => state === 'building' || head - checkpoint < 500n,
          ),
        async () => {
          for (let round = 1; round <= effort(4, 2); round++) {
            if ((await readAllRebuilds(observer.db)).length === 0) {
              await spoil(observer, balanceV1);
              await form.ask(observer, balanceV1);
              asked++;
            }
            await join(`worker-${round}`);
            const target = (await observer.log.head()) + BigInt(Math.floor(random() * 400));
            await until(async () => (await observer.log.head()) > target);
            // The process that rebuilds, or otherwise any that maintains something.
            const owners = [...(await readAllRebuilds(observer.db)), ...(await readRegistry(observer.db))].map(
              ({ owner }) => owner,
            );
            const victim = owners.find((owner) => owner !== null && names.has(owner)) ?? [...names.keys()][0];
            await names.get(victim ?? '')?.end('SIGKILL');
            names.delete(victim ?? '');
          }
        },
      );
      await until(async () => (await readAllRebuilds(observer.db)).length === 0);
      await caughtUp(observer);
      expect(asked).toBeGreaterThan(0);
      for (const projection of [balanceV1, balanceV2, openingsV1] as Projection[])
        await expectTrue(observer, projection, `seed ${seed}`);
      for (const worker of names.values()) await worker.end('SIGTERM');
    }, 900_000); // as kill.test.ts
  });
}

async function snapshotOf({ db }: Runtime, { name, version }: Projection): Promise<void> {
  await takeSnapshot({ db, readSchema: 'read_models', name, version }, { actor: 'ann', reason: 'half way' });
}

/** The credits of each account, counted by code of that name. */
function recoded(codeVersion: string): Projection {
  return defineProjection({
    name: 'credits',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
    key: (event) => event.streamId,
    evolve: { Credited: (row) => ({ credits: (row?.credits ?? 0) + 1 }) },
    codeVersion,
  });
}

/** Makes every row wrong that a rebuild folds. */
async function spoil(runtime: Runtime, { name, version }: Projection): Promise<void> {
  const found = (await readRegistry(runtime.db)).find((entry) => entry.name === name && entry.version === version);
  const table = `read_models."${found?.tableName}"`;
  await runtime.db.transaction(async (tx) => {
    // One row at a time; otherwise this and a batch of the processor could deadlock.
    await tx.query({ text: `lock table ${table} in share row exclusive mode` });
    await tx.query({ text: `update ${table} set movements = movements + 1000` });
  });
}

/** An account that is opened, then credited. */
async function history(runtime: Runtime, events: number): Promise<void> {
  const streamId = `account-${crypto.randomUUID()}`;
  await runtime.log.append({
    family: account,
    streamId,
    events: [
      { type: 'Opened', payload: { owner: 'Ada' } },
      ...Array.from({ length: events - 1 }, () => ({ type: 'Credited', payload: { amount: '1' } }) as const),
    ],
  });
}

async function credits(runtime: Runtime, events: number): Promise<void> {
  const all = Array.from({ length: events }, () => ({ type: 'Credited', payload: { amount: '1' } }) as const);
  await runtime.log.append({ family: account, streamId: 'a', events: all });
}

async function caughtUp(runtime: Runtime): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () =>
    (await readRegistry(runtime.db)).every(({ checkpoint, state }) => checkpoint >= horizon && state === 'active'),
  );
}

async function states(runtime: Runtime): Promise<string[]> {
  return (await readRegistry(runtime.db)).map(({ name, version, state }) => `${name}@${version} ${state}`);
}

/** Of the rebuild that ended last, according to the audit log. */
async function eventsFolded(runtime: Runtime): Promise<number> {
  const [step] = await runtime.db.query<{ reason: string }>({
    text: `select reason from refold.transitions where reason ~ 'events folded' order by id desc limit 1`,
  });
  return Number(/(\d+) events folded/.exec(step?.reason ?? '')?.[1]);
}

async function expectTrue(runtime: Runtime, projection: Projection, message = projection.id): Promise<void> {
  await runtime.versions.refresh();
  const expected = await foldedTable(runtime.log, projection);
  expect(await storedTable(runtime.db, runtime.versions.stored(projection)), message).toEqual(expected);
}
