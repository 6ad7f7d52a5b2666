import { afterAll, expect, test } from 'vitest';
import { readBegunVersions } from '../../src/store/reactors/reactor-versions.ts';
import { readReactors } from '../../src/store/reactors/reactors.ts';
import { seeded } from '../support/account-traffic.ts';
import { databaseOfFile } from '../support/database-of-file.ts';
import { seed } from '../support/seed.ts';
import { until } from '../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../support/worker-processes.ts';
import { wrongStays } from './hotel-judge.ts';
import { HotelTraffic } from './hotel-traffic.ts';

// `STAYS=2520 npm run test:programs -- test/examples/hotel-changes.test.ts` has more than 500 under way at each change.
const stays = Number(process.env.STAYS ?? 48);
const roomsOfPhase = Math.ceil(stays / 3);
const killsOfPhase = Math.ceil(stays / 1000);
const roomsPerKill = Math.ceil(roomsOfPhase / killsOfPhase);
// The longest time that a stay waits for a timer, in milliseconds.
const longest = Math.min(50 * stays, 60_000);

const { database, db } = await databaseOfFile();
const workers = createWorkerProcesses('examples/hotel-process.ts');
afterAll(() => workers.killAll());

type Release = 1 | 2 | 3;

/** The running workers by name, each with its release. */
class Fleet {
  readonly #running = new Map<string, { readonly release: Release; readonly worker: WorkerProcess }>();
  #started = 0;
  kills = 0;

  async start(release: Release): Promise<void> {
    const owner = `worker-${++this.#started}`;
    this.#running.set(owner, { release, worker: await workers.start({ url: database.url, owner, hotel: release }) });
  }

  /** Kills the process that runs the workflow, and starts one of another release, or of the same. */
  async replaceOwner(release: Release): Promise<void> {
    const { owner, worker } = await until(async () => {
      const owner = (await stayReactor())?.owner ?? '';
      const running = this.#running.get(owner);
      return running && { owner, worker: running.worker };
    });
    this.#running.delete(owner);
    await worker.end('SIGKILL');
    this.kills++;
    await this.start(release);
  }

  async stop(which: (release: Release) => boolean): Promise<void> {
    for (const [owner, { release, worker }] of this.#running) {
      if (!which(release)) continue;
      this.#running.delete(owner);
      await worker.end('SIGTERM');
    }
  }
}

const stayReactor = async () => (await readReactors(db)).find(({ name }) => name === 'stay');

test('stays under way end on the version that they began on, through two changes and kills, as their rules allow', async () => {
  console.info(`seed ${seed}`);
  const fleet = new Fleet();
  const traffic = new HotelTraffic({ db, random: seeded(seed), longest });
  const busy = async (rooms: number, releases: readonly Release[], replacement: Release) => {
    for (let left = rooms; left > 0; left -= roomsPerKill)
      await traffic.go(Math.min(left, roomsPerKill), releases, () => fleet.replaceOwner(replacement));
  };
  const underWay: number[] = [];
  /** Waits until the newest version has begun, and all stays that were reserved so far. */
  const begun = async (newest: Release) => {
    await until(async () => (await readBegunVersions(db, 'stay')).at(-1)?.version === newest);
    const head = await traffic.head();
    const { waiting } = await until(async () => {
      const found = await stayReactor();
      return found !== undefined && found.checkpoint >= head && found;
    });
    underWay.push(waiting);
  };

  await fleet.start(1);
  await busy(roomsOfPhase, [1], 1);
  await begun(1);

  await fleet.start(2);
  await busy(roomsOfPhase, [1, 2], 2);
  await fleet.stop((release) => release === 1);
  await begun(2);

  await fleet.start(3);
  await busy(roomsOfPhase, [2, 3], 3);
  await fleet.stop((release) => release === 2);

  await traffic.everyonePays();
  await until(async () => (await traffic.underWay()) === 0);
  // Those that their guests have cancelled wait for their due times.
  await until(async () => (await stayReactor())?.waiting === 0);
  await fleet.stop(() => true);

  expect(await stayReactor()).toMatchObject({ deadLetters: 0, error: null });
  const versions = await readBegunVersions(db, 'stay');
  expect(versions.map(({ version }) => version)).toEqual([1, 2, 3]);
  const versionAt = (position: bigint) => versions.findLast(({ after }) => after < position)?.version ?? 0;
  expect(wrongStays(await traffic.events(), versionAt)).toEqual([]);
  for (const count of underWay) expect(count).toBeGreaterThanOrEqual(Math.floor(roomsOfPhase * 0.6));
  console.info(`${fleet.kills} kills; ${underWay.join(' and ')} stays under way at the changes`);
}, 900_000); // slow on a busy machine; only the result matters
