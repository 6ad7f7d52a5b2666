import { Writable } from 'node:stream';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  defineConfig,
  defineReactor,
  globalPosition,
  type Reactor,
  type ReactorContext,
  type ReactorErrorPolicy,
  type RecordedEvent,
} from '../../../src/index.ts';
import { versionedReactors } from '../../../src/reactors/versioned-reactor.ts';
import { registerReactorMetrics } from '../../../src/runtime/monitoring/reactor-metrics.ts';
import { AttemptLog } from '../../../src/runtime/reactors/attempt-log.ts';
import { beginNewestVersion } from '../../../src/runtime/reactors/begin-version.ts';
import { findUndeclaredVersions } from '../../../src/runtime/reactors/reactor-versions.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { readReactors } from '../../../src/store/reactors/reactors.ts';
import { seeded } from '../../support/account-traffic.ts';
import { effort } from '../../support/effort.ts';
import { account, credit } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';
import { job } from './job-events.ts';

let database: TestDatabase;
let db: Database;
let warnings: string[];
/** What ran: process, version and amount. */
let ran: string[];
const running = new Set<Runtime>();
const workers = createWorkerProcesses('runtime/reactors/job-process.ts');
const step = { actor: 'ann', reason: 'release taken back' };

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  warnings = [];
  ran = [];
});
afterEach(async () => {
  await workers.killAll();
  for (const runtime of running) await runtime.stop();
  running.clear();
  await db.close();
  await database.drop();
});

async function start(owner: string, versions: readonly Release[], { maintain = true, stopTimeout = 10_000 } = {}) {
  const lines = new Writable({
    write(chunk, _, done) {
      warnings.push((JSON.parse(String(chunk)) as { msg: string }).msg); // pino writes a line of JSON at a time
      done();
    },
  });
  const runtime = await startRuntime({
    config: defineConfig({
      events: [account],
      reactors: versions.map((release) => release(owner)),
      runtime: { polling: { min: 10, max: 50 }, stopTimeout },
    }),
    url: database.url,
    owner,
    development: false,
    maintain,
    logger: pino({ level: 'warn' }, lines),
  });
  running.add(runtime);
  return runtime;
}

async function stop(runtime: Runtime): Promise<void> {
  running.delete(runtime);
  await runtime.stop();
}

/** A version of the reactor, as a process of this name declares it. */
type Release = (owner: string) => Reactor;
type Handle = (event: RecordedEvent<string, { amount: string }>, context: ReactorContext) => unknown;

/** Version `version`, which handles credits. It records what it has handled. */
const release =
  (version: number, handle: Handle = () => {}, onError: ReactorErrorPolicy | 'stop' = 'stop'): Release =>
  (owner) =>
    defineReactor({
      name: 'watch',
      version,
      events: account,
      from: 'beginning',
      handle: {
        async Credited(event, context) {
          await handle(event, context);
          ran.push(`${owner} v${version} ${event.payload.amount}`);
        },
      },
      onError,
    });

async function append(runtime: Runtime, streamId: string, ...amounts: string[]) {
  for (const amount of amounts)
    await runtime.log.append({ family: account, streamId, events: [{ type: 'Credited', payload: { amount } }] });
}

const status = async (runtime: Runtime) => (await runtime.reactors.status())[0] ?? expect.unreachable();

const ownedBy = (runtime: Runtime, owner: string, versions: number) =>
  until(async () => {
    const found = await status(runtime);
    return found.owner === owner && found.versions.length === versions;
  });

const stoppedAt = (runtime: Runtime, position: bigint) =>
  until(async () => {
    const found = await status(runtime);
    return found.state === 'stopped' && found.position === position && found.error?.message;
  });

async function settled(runtime: Runtime): Promise<void> {
  const head = await runtime.log.head();
  await until(async () => (await status(runtime)).position >= head);
}

/** Fails and is tried again, until it is opened. */
function gate() {
  let isOpen = false;
  let tries = 0;
  const patient: ReactorErrorPolicy = {
    policy: 'stop',
    retries: [{ times: Number.POSITIVE_INFINITY, first: 1, maxPause: 1 }],
  };
  return {
    patient,
    open: () => (isOpen = true),
    tried: () => until(() => tries > 0),
    pass({ payload }: { readonly payload: { readonly amount: string } }) {
      if (payload.amount !== 'slow' || isOpen) return;
      tries++;
      throw new Error('not yet');
    },
  };
}

test('a new version handles the events that no earlier one has begun, and those end on theirs', async () => {
  const { pass, patient, open, tried } = gate();
  const v1 = release(1, pass, patient);
  const old = await start('old', [v1]);
  await append(old, 'a', 'slow');
  await tried();
  await append(old, 'b', '2');
  await until(() => ran.length === 1);

  const next = await start('new', [v1, release(2)]);
  await ownedBy(next, 'new', 2);
  await append(old, 'b', '3');
  await until(() => ran.includes('new v2 3'));
  expect((await status(next)).versions).toEqual([
    { version: 1, after: 0n, upTo: 2n, underWay: 1, isNeeded: true },
    { version: 2, after: 2n, upTo: null, underWay: expect.any(Number), isNeeded: true },
  ]);
  const registry = new Registry();
  registerReactorMetrics(registry, next.reactors.status);
  const metrics = await registry.metrics();
  expect(metrics).toContain('refold_reactor_events_under_way{reactor="watch",version="1"} 1\n');
  expect(metrics).toContain('refold_reactor_version_needed{reactor="watch",version="1"} 1\n');
  open();
  await settled(next);
  // The second event is past the checkpoint, so it is handled again.
  expect(ran).toEqual(['old v1 2', 'new v1 2', 'new v2 3', 'new v1 slow']);
  expect((await status(next)).versions).toEqual([
    { version: 1, after: 0n, upTo: 2n, underWay: 0, isNeeded: false },
    { version: 2, after: 2n, upTo: null, underWay: 0, isNeeded: true },
  ]);
  expect((await next.reactors.history('watch'))[0]).toMatchObject({
    operation: 'version begun',
    actor: 'new',
    reason: 'version 2 is declared; it handles the events after position 2',
  });

  // Version 1 may be deleted now. After a rewind, its events are still its own.
  await stop(old);
  await stop(next);
  expect(await findUndeclaredVersions(db, [release(2)('last')])).toEqual([]);
  const last = await start('last', [v1, release(2)]);
  await last.reactors.rewind('watch', globalPosition('1'), step);
  await settled(last);
  expect(ran.slice(4)).toEqual(['last v1 2', 'last v2 3']);
});

test('a step of an instance under way keeps its outcome, and another version has its own steps', async () => {
  const { patient, open, tried, pass } = gate();
  const pay = async ({ execute }: ReactorContext, amount: string) => {
    const { streamVersion } = await execute(credit, { accountId: 'paid', amount }, { step: 'pay' });
    return streamVersion;
  };
  const versions: number[] = [];
  const v1 = release(
    1,
    async (event, context) => {
      if (event.streamId === 'paid') return;
      versions.push(await pay(context, '1'));
      pass(event);
    },
    patient,
  );
  const v2 = release(2, async ({ streamId }, context) => {
    if (streamId !== 'paid') versions.push(await pay(context, '2'));
  });
  const old = await start('old', [v1]);
  await old.log.append({ family: account, streamId: 'paid', events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  await append(old, 'a', 'slow');
  await tried();
  const next = await start('new', [v2, v1]);
  await ownedBy(next, 'new', 2);
  await append(next, 'b', '3');
  await until(() => ran.includes('new v2 3'));
  open();
  await settled(next);
  await settled(next); // what the steps have written
  const amounts: unknown[] = [];
  for await (const { payload } of next.log.readStream(account, 'paid')) amounts.push(payload);
  expect(amounts).toEqual([{ owner: 'Ada' }, { amount: '1' }, { amount: '2' }]);
  expect(new Set(versions)).toEqual(new Set([2, 3]));
  expect(ran).toContain('new v1 slow');
});

test('a version that was removed too early stops the reactor with the reason, until a process declares it', async () => {
  const { pass, patient, open, tried } = gate();
  const v1 = release(1, pass, patient);
  const old = await start('old', [v1]);
  await append(old, 'a', 'slow');
  await tried();
  await stop(old);

  const next = await start('new', [release(2)]);
  const undeclared = 'and this program does not declare it: they wait for a program that does.';
  expect(warnings).toContain(
    `watch@1 has 1 event under way, ${undeclared} Declare version 1 beside the newer one until 'refold reactor list' shows that it is not needed.`,
  );
  await append(next, 'b', '2');
  expect(await stoppedAt(next, 0n)).toBe(
    "watch@1 handles the events up to position 1, and this process does not declare it. No running process does: deploy one, or leave those events out with 'refold reactor skip watch 1'.",
  );
  expect(await findUndeclaredVersions(db, [release(2)('new')])).toMatchObject([{ isMissed: true }]);
  expect(ran).toEqual([]);

  open();
  const both = await start('both', [v1, release(2)]);
  await settled(both);
  expect(ran).toEqual(['both v1 slow', 'both v2 2']);
});

describe('after a release was taken back', () => {
  /** Also handles debits, which version 1 does not know. */
  const withDebits: Release = (owner) =>
    defineReactor({
      name: 'watch',
      version: 2,
      events: account,
      from: 'beginning',
      handle: async ({ type }) => void ran.push(`${owner} v2 ${type}`),
    });

  test('the reactor stops before the events of its version, until it is deployed again', async () => {
    const old = await start('old', [release(1)]);
    await append(old, 'a', '1');
    // Version 1 ignores it. Version 2 begins after it.
    await old.log.append({ family: account, streamId: 'a', events: [{ type: 'Debited', payload: { amount: '1' } }] });
    await settled(old);
    const next = await start('new', [release(1), withDebits]);
    await ownedBy(old, 'new', 2);
    await stop(next);
    await old.log.append({ family: account, streamId: 'a', events: [{ type: 'Debited', payload: { amount: '2' } }] });
    expect(await stoppedAt(old, 2n)).toBe(
      "watch@2 handles the events after position 2, and this process does not declare it. No running process does: deploy one. If it is taken back for good: 'refold reactor withdraw watch 2'.",
    );
    await stop(old);
    warnings = [];
    await start('old again', [release(1)]);
    expect(warnings).toContain(
      "watch@2 handles the events after position 2, and this program does not declare it: they wait for a program that does. If that one is taken back for good: 'refold reactor withdraw watch 2'.",
    );
    const again = await start('new again', [withDebits]);
    await settled(again);
    expect(ran).toEqual(['old v1 1', 'new again v2 Debited']);
  });

  test('an operator withdraws its version, and the one below handles its events', async () => {
    const old = await start('old', [release(1)]);
    await append(old, 'a', '1');
    await settled(old);
    const { pass, patient, tried, open } = gate();
    const v2 = release(2, pass, patient);
    const next = await start('new', [release(1), v2]);
    await ownedBy(old, 'new', 2);
    await append(old, 'a', 'slow');
    await tried();
    const { withdraw } = old.reactors;
    await expect(withdraw('watch', 1, step)).rejects.toThrow(
      'watch has version 2 as its newest; only that one can be withdrawn.',
    );
    await expect(withdraw('watch', 2, step)).rejects.toMatchObject({
      code: 'INVALID_TRANSITION',
      message: expect.stringMatching(/^watch has version 2 in new\. Stop this first;/),
    });
    await stop(next);
    await stoppedAt(old, 1n);
    await withdraw('watch', 2, step);
    await settled(old);
    expect(ran).toEqual(['old v1 1', 'old v1 slow']);
    expect((await status(old)).versions).toMatchObject([{ version: 1, upTo: null }]);
    expect((await old.reactors.history('watch'))[0]).toMatchObject({
      operation: 'version withdrawn',
      reason: 'version 2: release taken back',
    });
    await expect(withdraw('watch', 1, step)).rejects.toThrow('watch has no version below 1.');

    // The release comes again: it begins with the events that no version has begun.
    open();
    await start('new again', [release(1), v2]);
    await ownedBy(old, 'new again', 2);
    await append(old, 'a', '3');
    await settled(old);
    expect(ran.slice(2)).toEqual(['new again v2 3']);
    expect((await status(old)).versions).toMatchObject([{ upTo: 2n }, { after: 2n }]);
  });
});

test('dead letters stay with their version, and wait for a process that declares it', async () => {
  let isMended = false;
  const fails: Handle = ({ payload }) => {
    if (payload.amount === '13' && !isMended) throw new Error('bad luck');
  };
  const v1 = release(1, fails, { policy: 'dead-letter', retries: [] });
  const old = await start('old', [v1]);
  await append(old, 'a', '13', '2');
  await until(async () => (await status(old)).deadLetters === 2);
  await settled(old);
  await stop(old);

  const next = await start('new', [release(2)]);
  await append(next, 'b', '3');
  await settled(next);
  expect((await status(next)).versions).toMatchObject([
    { version: 1, upTo: 2n, underWay: 2, isNeeded: true },
    { version: 2, after: 2n },
  ]);
  expect(await findUndeclaredVersions(db, [release(2)('new')])).toEqual([
    { isMissed: true, message: expect.stringContaining('watch@1 has 2 events under way, and this program') },
  ]);
  isMended = true;
  await next.reactors.redeliver('watch', 'retry', step);
  const [letter] = await until(async () => {
    const letters = await next.reactors.deadLetters('watch');
    return letters.every(({ requested }) => requested === null) && letters;
  });
  expect(letter).toMatchObject({
    attempts: 1,
    error: { message: expect.stringContaining('watch@1 handles the events up to position 2, and this process') },
  });

  const both = await start('both', [v1, release(2)]);
  await ownedBy(both, 'both', 2);
  await both.reactors.redeliver('watch', 'retry', step);
  await until(async () => (await status(both)).deadLetters === 0);
  expect(ran).toEqual(['new v2 3', 'both v1 13', 'both v1 2']);
  expect((await status(both)).versions[0]).toMatchObject({ underWay: 0, isNeeded: false });
});

describe('handlers that wait', () => {
  /** Version 1 waits for any debit of the stream, version 2 for one of 7 unless it is told otherwise. */
  const waiting =
    (version: number, byAmount = version === 2): Release =>
    (owner) =>
      defineReactor({
        name: 'watch',
        version,
        events: account,
        from: 'beginning',
        waitsFor: { Debited: ({ streamId, payload }) => (byAmount ? `${streamId} ${payload.amount}` : streamId) },
        handle: {
          async Credited({ streamId, payload }, { wait }) {
            if (payload.amount === '0') await wait.until('2999-01-01');
            const debited = await wait.for('Debited', { key: byAmount ? `${streamId} 7` : streamId });
            ran.push(`${owner} v${version} ${payload.amount} ${debited.payload.amount}`);
          },
        },
      });
  const debit = ({ log }: Runtime, amount: string) =>
    log.append({ family: account, streamId: 'a', events: [{ type: 'Debited', payload: { amount } }] });
  const waits = (runtime: Runtime, count: number) => until(async () => (await status(runtime)).waiting === count);

  test('end on their version, each with the keys of its own', async () => {
    const old = await start('old', [waiting(1)]);
    await append(old, 'a', '1');
    await waits(old, 1);
    const next = await start('new', [waiting(1), waiting(2)]);
    await ownedBy(next, 'new', 2);
    await append(old, 'a', '2');
    await waits(old, 2);
    await settled(old);
    expect((await status(next)).versions).toMatchObject([
      { version: 1, upTo: 1n, underWay: 1, isNeeded: true },
      { version: 2, after: 1n, underWay: 1 },
    ]);
    await stop(old);
    await stop(next);

    // Without version 1, its handler misses nothing: it goes on when version 1 is there again.
    const last = await start('last', [waiting(2)]);
    await debit(last, '5');
    await debit(last, '7');
    await settled(last);
    await waits(last, 1);
    expect(await findUndeclaredVersions(db, [waiting(2)('last')])).toMatchObject([{ isMissed: true }]);
    const both = await start('both', [waiting(1), waiting(2)]);
    await waits(both, 0);
    expect(ran).toEqual(['last v2 2 7', 'both v1 1 5']);
  });

  test('run again on the version below when theirs is withdrawn', async () => {
    const old = await start('old', [waiting(1)]);
    await append(old, 'b', '1');
    await waits(old, 1);
    const next = await start('new', [waiting(1), waiting(2, false)]);
    await ownedBy(next, 'new', 2);
    await append(old, 'a', '2');
    await waits(old, 2);
    await settled(old);
    await stop(next);
    await old.reactors.withdraw('watch', 2, step);
    await debit(old, '5');
    await waits(old, 1);
    expect(ran).toEqual(['old v1 2 5']);
  });

  test('stop the reactor when their wait is over and no process declares their version, until one does', async () => {
    const old = await start('old', [waiting(1)]);
    await append(old, 'a', '0');
    await waits(old, 1);
    await settled(old);
    await stop(old);
    const next = await start('new', [waiting(2)]);
    await ownedBy(next, 'new', 2);
    await stop(next);
    await db.query({ text: 'update refold.reactor_instances set due = clock_timestamp()' });
    const again = await start('new again', [waiting(2)]);
    expect(await stoppedAt(again, 1n)).toContain('watch@1 handles the events up to position 1, and this process');
    await start('both', [waiting(1), waiting(2)]);
    await ownedBy(again, 'both', 2);
    await debit(again, '5');
    await waits(again, 0);
    expect(ran).toEqual(['both v1 0 5']);
  });
});

test('a new reactor begins with its newest version', async () => {
  const runtime = await start('new', [release(1), release(3), release(2)]);
  await append(runtime, 'a', '1');
  await settled(runtime);
  expect(ran).toEqual(['new v3 1']);
  expect((await status(runtime)).versions).toMatchObject([{ version: 3, after: 0n, upTo: null }]);
  await expect(runtime.reactors.withdraw('watch', 3, step)).rejects.toThrow('watch has no version below 3.');
});

test('a former owner that is only stalled begins no event once a new version has begun', async () => {
  await start('gateway', [release(1)], { maintain: false });
  const unit = { kind: 'reactor', name: 'watch', version: 0, partition: 0 } as const;
  const stalled = await claimProcessor(db, unit, 'stalled');
  const attempts = new AttemptLog({ db, claim: stalled, processId: 'stalled' }, []);
  const claim = await claimProcessor(db, unit, 'next');
  expect(await attempts.begin(globalPosition('7'))).toBe(1);
  const declared = (...versions: number[]) =>
    versionedReactors(versions.map((version) => release(version)('next')))[0] ?? expect.unreachable();
  const begun = await beginNewestVersion(db, claim, declared(1, 2), 'next');
  await expect(attempts.begin(globalPosition('8'))).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
  expect(['7', '8'].map((position) => begun.at(globalPosition(position))?.version)).toEqual([1, 2]);
  await expect(beginNewestVersion(db, stalled, declared(3), 'stalled')).rejects.toMatchObject({
    code: 'PROCESSOR_FENCED',
  });
});

test('in any order of deployment, each event is handled by one version, whichever processes own the reactor', async () => {
  const random = seeded(seed);
  const versionsOf = new Map<string, Set<number>>();
  const handled = new Set<string>();
  let mayHang = true;
  let hanging = 0;
  const flaky = (version: number): Release =>
    release(
      version,
      async ({ payload: { amount } }, { signal }) => {
        versionsOf.set(amount, (versionsOf.get(amount) ?? new Set()).add(version));
        const chance = random();
        if (chance < 0.2) throw new Error('not yet');
        if (chance < 0.35 && mayHang) {
          hanging++;
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          hanging--;
        }
        if (!signal.aborted) handled.add(amount);
      },
      { policy: 'stop', retries: [{ times: Number.POSITIVE_INFINITY, first: 1, maxPause: 5 }] },
    );
  const programs = [[1], [1, 2], [2], [1, 2, 3], [2, 3], [3]];
  const processes: Runtime[] = [];
  const gateway = await start('gateway', [flaky(1)], { maintain: false });
  const isBlocked = async () => hanging > 0 || processes.length === 0 || (await status(gateway)).state === 'stopped';
  let amounts = 0;
  for (let turn = 0; turn < effort(24, 14); turn++) {
    const next = random();
    if (next < 0.3 && processes.length < 4) {
      const program = programs[Math.floor(random() * programs.length)] ?? [];
      processes.push(await start(`process ${turn}`, program.map(flaky), { stopTimeout: 0 }));
    } else if (next < 0.5) {
      const [gone] = processes.splice(Math.floor(random() * processes.length), 1);
      if (gone) await stop(gone);
    } else {
      const amount = String(++amounts);
      await append(gateway, `stream ${amounts % 3}`, amount);
      if (random() < 0.5) await until(async () => versionsOf.has(amount) || (await isBlocked()));
    }
  }
  for (const one of processes) await stop(one);
  mayHang = false;
  await settled(await start('last', [1, 2, 3].map(flaky)));
  const mixed = [...versionsOf].filter(([, versions]) => versions.size !== 1);
  expect(mixed, `seed ${seed}`).toEqual([]);
  expect(handled.size).toBe(amounts);
});

test('processes killed at random, of any releases, run the steps of one version for each event', async () => {
  const random = seeded(seed);
  const log = createEventLog(db, [job]);
  const programs = ['v1', 'v1 v2', 'v2', 'v1 v2 v3', 'v2 v3', 'v1'];
  const reactor = async () => (await readReactors(db))[0];
  const living: WorkerProcess[] = [];
  let asked = 0;
  const ask = () => log.append({ family: job, streamId: `job-${++asked}`, events: [{ type: 'Asked', payload: {} }] });
  for (let round = 0; round < effort(4, 3); round++) {
    const program = round === 0 ? 'v1' : programs[Math.floor(random() * programs.length)];
    living.push(await workers.start({ url: database.url, owner: `worker-${round} ${program}` }));
    const before = (await reactor())?.checkpoint ?? 0n;
    for (let count = 0; count < 10; count++) await ask();
    const progress = BigInt(1 + Math.floor(random() * 15));
    await until(async () => {
      const found = await reactor();
      return found && (found.checkpoint - before >= progress || found.status === 'stopped');
    });
    if (living.length < 2) continue;
    const [killed] = living.splice(Math.floor(random() * living.length), 1);
    await killed?.end('SIGKILL');
  }
  const last = await workers.start({ url: database.url, owner: 'last v1 v2 v3' });
  const head = await log.head();
  await until(async () => ((await reactor())?.checkpoint ?? 0n) >= head);
  for (const worker of [...living, last]) await worker.end('SIGTERM');
  for (let number = 1; number <= asked; number++) {
    const steps: string[] = [];
    for await (const { type, payload } of log.readStream(job, `job-${number}`)) {
      const { by = type }: { readonly by?: string } = payload;
      steps.push(by);
    }
    const possible = [1, 2, 3].map((version) => ['Asked', `v${version} first`, `v${version} second`].join());
    expect(possible, `job-${number}, seed ${seed}`).toContain(steps.join());
  }
}, 900_000); // processes, one after another, on a machine that may be busy
