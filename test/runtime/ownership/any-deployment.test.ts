import { afterAll, beforeAll, expect, test } from 'vitest';
import { verifyPayloads } from '../../../src/runtime/verification/verify-payloads.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { readInlineVersions } from '../../../src/store/registry/inline-versions.ts';
import { seeded } from '../../support/account-traffic.ts';
import { effort } from '../../support/effort.ts';
import { applicationOf, mills, pastChannels, type Release } from '../../support/releases.ts';
import { seed } from '../../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type Deployment, type WorkerProcess } from '../../support/worker-processes.ts';

let database: TestDatabase;
let db: Database;
const workers = createWorkerProcesses('runtime/ownership/release-process.ts');

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  // The processes may have a role that makes no tables.
  await database.administer(`
    create table budget as select 0 as remaining;
    create table letters (position bigint not null, mills int not null);
    grant all on budget, letters to public`);
});
afterAll(async () => {
  await workers.killAll();
  await db.close();
  await database.drop();
});

/** Each release has one more change than the release before it. The changes come in any order. */
function releasesOf(random: () => number): Release[] {
  const changes = (['family', 'family', 'type', 'type', 'payload', 'payload'] as (keyof Release)[])
    .map((change) => ({ change, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ change }) => change);
  // Before the first upcaster, there is nothing to edit.
  const first = changes.indexOf('payload') + 1;
  changes.splice(first + Math.floor(random() * (changes.length - first + 1)), 0, 'edit');
  const releases: Release[] = [{ family: 0, type: 0, payload: 1, edit: 0 }];
  for (const change of changes) {
    const last = releases.at(-1) ?? expect.unreachable();
    releases.push({ ...last, [change]: last[change] + 1 });
  }
  return releases;
}

interface Payment {
  readonly position: bigint;
  readonly streamId: string;
  readonly streamPosition: number;
  readonly version: number;
  /** Its amount, by the version that its writer stored. */
  readonly mills: number;
  readonly before: number | null;
}

interface Stored {
  readonly payments: readonly Payment[];
  readonly listed: readonly { id: string; mills: number; seen: string }[];
  readonly atOnce: readonly { id: string; mills: number; seen: string }[];
  readonly isLive: boolean;
  readonly summed: readonly { id: string; mills: number; payments: number }[];
  readonly letters: readonly { position: bigint; mills: number }[];
  readonly receipts: readonly { position: string; mills: number }[];
}

/** Everything of one moment, read without any release. */
function stored(): Promise<Stored> {
  return db.transaction(
    async (tx) => {
      const events = await tx.query<{
        position: bigint;
        stream_id: string;
        stream_position: bigint;
        payload_version: number;
        type: string;
        payload: { amount: number; before: number | null; position: string; mills: number };
      }>({
        text: 'select position, stream_id, stream_position, payload_version, type, payload from refold.events order by position',
      });
      const rows = <Row extends object>(table: string) => tx.query<Row>({ text: `select * from read_models.${table}` });
      return {
        payments: events
          .filter(({ type }) => type !== 'Receipted')
          .map(({ position, stream_id: streamId, stream_position, payload_version: version, payload }) => ({
            ...{ position, streamId, version, streamPosition: Number(stream_position) },
            mills: payload.amount * (mills[version - 1] ?? Number.NaN),
            before: payload.before,
          })),
        receipts: events.filter(({ type }) => type === 'Receipted').map(({ payload }) => payload),
        listed: await rows<Stored['listed'][number]>('listed_v1'),
        atOnce: await rows<Stored['atOnce'][number]>('at_once_v1'),
        isLive: (await readInlineVersions(tx)).some(({ status }) => status === 'live'),
        summed: await rows<Stored['summed'][number]>('summed_v1'),
        letters: await tx.query({ text: 'select position, mills from letters' }),
      };
    },
    { isolation: 'repeatable read', readOnly: true },
  );
}

const sumOf = (payments: readonly Payment[]) => payments.reduce((sum, one) => sum + one.mills, 0);
const ofStream = ({ payments }: Stored, id: string) => payments.filter(({ streamId }) => streamId === id);

function judge(found: Stored): void {
  for (const { id, ...row } of [...found.listed, ...found.atOnce]) {
    const seen = row.seen.trim().split(' ');
    const payments = ofStream(found, id).slice(0, seen.length);
    expect(seen).toEqual(
      payments.map(({ streamPosition, mills, version }) => {
        const channels = version === 1 ? ['null', ...pastChannels].join('|') : 'web';
        return expect.stringMatching(`^${streamPosition}:${mills}:(${channels})$`);
      }),
    );
    expect(row.mills).toBe(sumOf(payments));
  }
  for (const row of found.summed) expect(row.mills).toBe(sumOf(ofStream(found, row.id).slice(0, row.payments)));
  if (found.isLive) expectWhole(found, found.atOnce);
  const sums = new Map<string, number>();
  for (const { position, streamId, mills, before } of found.payments) {
    const sum = sums.get(streamId) ?? 0;
    if (before !== null) expect(before, `what the payment at ${position} was decided on`).toBe(sum);
    sums.set(streamId, sum + mills);
  }
  const amounts = new Map(found.payments.map(({ position, mills }) => [position, mills]));
  for (const letter of found.letters) expect(letter.mills).toBe(amounts.get(letter.position));
  for (const receipt of found.receipts) expect(receipt.mills).toBe(amounts.get(BigInt(receipt.position)));
  expect(new Set(found.receipts.map(({ position }) => position)).size).toBe(found.receipts.length);
}

function expectWhole(found: Stored, rows: readonly { readonly id: string; readonly mills: number }[]): void {
  const whole = Map.groupBy(found.payments, ({ streamId }) => streamId);
  expect(new Map(rows.map(({ id, mills }) => [id, mills]))).toEqual(
    new Map([...whole].map(([id, payments]) => [id, sumOf(payments)])),
  );
}

/** Whether a process has met a payload that is not as its release reads it, or anything else that it can't get over. */
function isMisread({ msg, err }: WorkerProcess['said'][number]): boolean {
  if (msg.includes('has stopped')) return err?.code !== 'PAYLOAD_VERSION_UNKNOWN';
  return /misread|a payment failed/.test(`${msg} ${err?.message}`);
}

/** Whether everything has been folded, written and sent. */
function isDone({ payments, letters, receipts, listed, summed, isLive }: Stored): boolean {
  const seen = listed.reduce((count, row) => count + row.seen.trim().split(' ').length, 0);
  const counted = summed.reduce((count, row) => count + row.payments, 0);
  const sent = new Set(letters.map(({ position }) => position));
  return isLive && [seen, counted, receipts.length, sent.size].every((count) => count === payments.length);
}

test('in any order of deployment, with kills, no row, state, decision or side effect comes from a misread payload', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  const drawn = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] ?? expect.unreachable();
  const releases = releasesOf(random);
  const newest = releases.at(-1) ?? expect.unreachable();
  const living = new Set<WorkerProcess>();
  const started: WorkerProcess[] = [];
  const crashed: string[] = [];
  let deployments = 0;
  const deploy = async (release: Release, maintain = random() < 0.8) => {
    const number = deployments++;
    const owner = `process ${number} of release ${releases.indexOf(release)}`;
    const deployment: Deployment = { release, maintain, seed: seed + number };
    const worker = await workers.start({ url: database.url, owner, deployment });
    started.push(worker);
    living.add(worker);
    void worker.ended.then(() => living.has(worker) && crashed.push(owner));
  };
  const end = async (worker: WorkerProcess, signal: 'SIGKILL' | 'SIGTERM') => {
    living.delete(worker);
    await worker.end(signal);
  };
  const check = async () => {
    expect(crashed).toEqual([]);
    expect(started.flatMap(({ said }) => said).filter(isMisread)).toEqual([]);
    const found = await stored();
    judge(found);
    return found;
  };
  /** Allows more payments, and waits until no more than some of them are left. */
  const traffic = async (payments: number, left: number) => {
    await db.query({ text: 'update budget set remaining = remaining + $1', values: [payments] });
    await until(async () => {
      await check();
      const [budget] = await db.query<{ remaining: number }>({ text: 'select remaining from budget' });
      return budget && budget.remaining <= left;
    });
  };

  await Promise.all([deploy(drawn(releases)), deploy(drawn(releases))]);
  const rounds = Number(process.env.RUNS ?? effort(4, 2));
  for (let round = 0; round < rounds; round++) {
    await Promise.all([traffic(30, Math.floor(random() * 30)), deploy(drawn(releases))]);
    if (living.size > 3 || random() < 0.8) await end(drawn([...living]), random() < 0.7 ? 'SIGKILL' : 'SIGTERM');
  }
  await deploy(newest, true);
  await traffic(20, 0);
  const found = await until(async () => {
    const now = await check();
    return isDone(now) && now;
  });
  for (const rows of [found.listed, found.atOnce, found.summed]) expectWhole(found, rows);
  const log = createEventLog(db, [applicationOf(newest, async () => {}).ledger]);
  expect(await verifyPayloads(log)).toMatchObject({ events: 2 * found.payments.length, problems: 0 });
  for (const worker of living) await end(worker, 'SIGTERM');
}, 900_000); // slow on a busy machine; only the result matters
