import { afterEach, describe, expect, test } from 'vitest';
import { defineConfig, type Projection } from '../../../src/index.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { seeded, traffic, underTraffic } from '../../support/account-traffic.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { type Place, settingOfEachTest } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';

/** One way to maintain a read table. */
export interface ProcessingUnderTest {
  readonly ownership: 'advisory' | 'lease';
  readonly form: string;
  /** The one that the worker processes declare. */
  readonly projection: Projection;
  /** Computes the expected rows event by event. @default the projection */
  readonly oneByOne?: Projection;
  /** @default 'together' */
  readonly place?: Place;
}

/** What holds for every read table, for any ownership and any form of folding. */
export function describeProcessing({
  ownership,
  form,
  projection,
  oneByOne = projection,
  place = 'together',
}: ProcessingUnderTest): void {
  describe(`a read table owned by ${ownership}, folded by ${form}${place === 'apart' ? ', in another database' : ''}`, () => {
    const setting = settingOfEachTest(place);
    const workers = createWorkerProcesses();
    const random = seeded(20_261_121);
    const options = ownership === 'lease' ? ({ ownership, leaseSeconds: 2 } as const) : { ownership };

    afterEach(() => workers.killAll());

    function start(maintain: boolean): Promise<Runtime> {
      return setting.start(defineConfig({ projections: [projection], runtime: { pageSize: 50, ...options } }), {
        maintain,
      });
    }

    function startWorker(owner: string): Promise<WorkerProcess> {
      const { database, storeUrl } = setting;
      const where = storeUrl === undefined ? { inline: true } : { storeUrl };
      return workers.start({ url: database.url, owner, runtime: options, evolveSql: true, ...where });
    }

    const own = async (runtime: Runtime) =>
      (await runtime.status()).find(({ name, version }) => name === projection.name && version === projection.version);

    async function expectFold(runtime: Runtime): Promise<void> {
      const horizon = await runtime.log.horizon();
      await until(async () => {
        const status = await own(runtime);
        return status && status.position >= horizon && status.state === 'active' && status.rebuild === null;
      });
      await runtime.versions.refresh();
      const stored = await storedTable(runtime.db, runtime.versions.stored(projection));
      expect(stored).toEqual(await foldedTable(runtime.log, oneByOne));
      expect(stored.size).toBeGreaterThan(0);
    }

    /** Appends for as long as `work` takes. */
    const whileAppending = (runtime: Runtime, work: () => Promise<void>) =>
      underTraffic(runtime.log, random, async (head) => head - ((await own(runtime))?.position ?? head) < 2_000n, work);

    test('folds each event once, whichever owner is killed at any time', async () => {
      const runtime = await start(false);
      await traffic(runtime.log, 500, random);
      let owner = await startWorker('worker-0');
      await whileAppending(runtime, async () => {
        for (let round = 1; round <= 2; round++) {
          const next = await startWorker(`worker-${round}`);
          const before = (await own(runtime))?.position ?? 0n;
          const moves = BigInt(Math.floor(random() * 200));
          await until(async () => ((await own(runtime))?.position ?? 0n) > before + moves);
          await owner.end('SIGKILL');
          // Rows that commit with the append need no owner.
          await until(async () => {
            const status = await own(runtime);
            return status?.inline === 'live' || status?.owner?.includes(next.owner);
          });
          owner = next;
        }
      });
      await expectFold(runtime);
    });

    test('is rebuilt under traffic', async () => {
      const runtime = await start(true);
      await traffic(runtime.log, 500, random);
      await expectFold(runtime);
      await runtime.db.query({ text: `delete from read_models.${projection.tableName}` });
      await whileAppending(runtime, async () => {
        await requestRebuild(runtime.db, projection, 'read_models', { actor: 'ann', reason: 'a table was emptied' });
        await until(async () => (await own(runtime))?.rebuild === null);
      });
      await expectFold(runtime);
    });

    test('shows an append to a reader that waits for its position', async () => {
      const runtime = await start(true);
      await runtime.log.append({
        family: account,
        streamId: 'a',
        events: [
          { type: 'Opened', payload: { owner: 'Ada' } },
          { type: 'Credited', payload: { amount: '12.50' } },
        ],
      });
      for (let n = 0; n < 20; n++) {
        const { position } = await runtime.log.append({
          family: account,
          streamId: 'a',
          events: [{ type: 'Credited', payload: { amount: '1.00' } }],
        });
        await runtime.positions.waitFor(runtime.versions.stored(projection), position, { timeout: 300_000 });
        const [[, row] = []] = await storedTable(runtime.db, projection);
        expect(row).toMatchObject({ movements: n + 2 });
      }
    });

    test('passes a verification against the log, and fails it after a change by hand', async () => {
      const runtime = await start(true);
      await traffic(runtime.log, 500, random);
      await expectFold(runtime);
      const compare = () => verifyVersion({ db: runtime.db, log: runtime.log, readSchema: 'read_models', projection });
      expect(await compare()).toMatchObject({ differences: 0 });
      await runtime.db.query({
        text: `
          update read_models.${projection.tableName} set movements = movements + 1
          where account_id = (select min(account_id) from read_models.${projection.tableName})`,
      });
      expect(await compare()).toMatchObject({
        differences: 1,
        samples: [{ kind: 'different', columns: ['movements'] }],
      });
    });
  });
}
