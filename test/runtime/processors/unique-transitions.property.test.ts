import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { defineConfig, type Projection, type RefoldError } from '../../../src/index.ts';
import {
  discardDeadLetters,
  listDeadLetters,
  recallDiscarded,
  retryDeadLetters,
} from '../../../src/runtime/dead-letters/dead-letters.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace, restoreSnapshot } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { effort } from '../../support/effort.ts';
import { open, statusOf } from '../../support/inline-setting.ts';
import { createRuntimeSetting } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { type UniqueRule, uniqueOwners } from '../../support/unique-domain.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';

const workers = createWorkerProcesses('runtime/processors/unique-writer-process.ts');
afterEach(() => workers.killAll());

const readSchema = 'read_models';
const step = { actor: 'ann', reason: 'a test' };

/** What a transition acts on: the version that holds the rule, and the last one. */
interface Held {
  readonly runtime: Runtime;
  readonly holder: Projection;
  readonly last: Projection;
}

const tableOf = ({ runtime: { db, log }, holder }: Held) => ({ db, log, readSchema, projection: holder });

/** What operators, deployments and accidents do to a version. They may be refused, for example while another one is under way. */
const transitions = {
  'a rebuild beside': ({ runtime, holder }) => requestRebuild(runtime.db, holder, readSchema, step),
  async 'a rebuild that takes over'({ runtime, holder }) {
    await requestRebuild(runtime.db, holder, readSchema, step);
    await untilRebuilt(runtime);
  },
  'a rebuild in place': (held) => rebuildInPlace(tableOf(held), step),
  'a snapshot': ({ runtime, holder: { name, version } }) =>
    takeSnapshot({ db: runtime.db, readSchema, name, version }, step),
  'a restored snapshot': (held) => restoreSnapshot(tableOf(held), step, 'latest'),
  /** The early duplicate is folded when its value is free. Others claim the value at the same moment. */
  async 'a retry of dead letters'(held) {
    const gives = { family: account, streamId: 'early 1', events: [{ type: 'Closed', payload: {} }] } as const;
    await held.runtime.log.append(gives).catch(() => {}); // another version may hold the rule by now
    const [retried] = await Promise.allSettled([
      retryDeadLetters(tableOf(held), step),
      ...Array.from({ length: 5 }, () => open(held.runtime, randomUUID(), 'early')),
    ]);
    if (retried.status === 'rejected') throw retried.reason;
  },
  /** The rebuild folds an event again that can't be folded. */
  async 'a processor that stops'(held) {
    const { runtime, holder } = held;
    if ((await statusOf(runtime, holder))?.state !== 'active') return;
    await untilRebuilt(runtime);
    await recallDiscarded(tableOf(held), step);
    await untilDone(() => rebuildInPlace(tableOf(held), step));
    await until(async () => (await statusOf(runtime, holder))?.processor === 'stopped');
    await untilHolding(held);
  },
  /** As `refold import` does. */
  async 'an import'({ runtime: { log } }) {
    const claims = Array.from({ length: 10 }, (_, n) => {
      const events = [{ type: 'Opened', payload: { owner: `value ${n * 3}` } }] as const;
      return { family: account, streamId: randomUUID(), events };
    });
    await log.appendInOrder(claims);
  },
  async 'a pause'({ runtime: { lifecycle }, holder: { name, version } }) {
    await lifecycle.pause(name, version, step);
    await untilDone(() => lifecycle.resume(name, version, step)); // its connection may have been ended
  },
  async 'a retirement'({ runtime, holder, last }) {
    const isNotNeeded = holder !== last && (await statusOf(runtime, last))?.state === 'active';
    if (isNotNeeded) await runtime.lifecycle.retire(holder.name, holder.version, step);
  },
  async 'an end of the sessions that append'({ runtime }) {
    await runtime.db.query({
      text: `
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where datname = current_database() and application_name = 'refold-append'`,
    });
  },
  async 'an insert by SQL'({ runtime }) {
    const insert = runtime.db.query({
      text: `
        insert into refold.events (stream_position, id, family, stream_id, type, payload)
        select 1, gen_random_uuid(), 'account', $1, 'Opened', payload from refold.events where type = 'Opened' limit 1
        returning position`,
      values: [randomUUID()],
    });
    const [written] = await insert;
    if (written) throw new Error('an unchecked value was written');
  },
} satisfies Record<string, (held: Held) => Promise<unknown>>;

const accidents = [
  'a killed process',
  'a process that is frozen for a while',
  'a process of the next release',
] as const;
const names = [...(Object.keys(transitions) as (keyof typeof transitions)[]), ...accidents];

/** Repeats what something else may prevent at the moment. */
async function untilDone(work: () => Promise<unknown>): Promise<void> {
  await until(() =>
    work().then(
      () => true,
      () => false,
    ),
  );
}

async function untilRebuilt({ db }: Runtime): Promise<void> {
  await until(async () => (await readRebuilds(db)).every(({ heldReason }) => heldReason !== null));
}

/** Waits until the version checks appends. Does what its operator would: leaves out the events that it stops at, and activates it. */
async function untilHolding(held: Held): Promise<void> {
  const { runtime, holder } = held;
  await until(async () => {
    const status = await statusOf(runtime, holder);
    if (status?.processor === 'stopped') await discardDeadLetters(tableOf(held), step).catch(() => {});
    if (status?.state === 'ready')
      await runtime.lifecycle.activate(holder.name, holder.version, step).catch(expectRefusal);
    return status?.state === 'active' && status.inline === 'live';
  });
}

/** A database whose log has an event that can't be folded, and with dead letters two events of one owner, all older than the rule. */
async function settingWithEarlyEvents({ onError }: UniqueRule) {
  const setting = await createRuntimeSetting();
  const runtime = await setting.start(defineConfig({ projections: [], events: [account] }));
  const owners = onError === 'stop' ? ['nobody'] : ['early', 'early', 'nobody'];
  for (const [index, owner] of owners.entries()) await open(runtime, `early ${index + 1}`, owner);
  await setting.stop(runtime);
  return setting;
}

/** The events after a position that claim a value which another one has claimed. The early event gives its value up. */
function duplicates({ db }: Runtime, after: bigint): Promise<{ owner: string; positions: bigint[] }[]> {
  return db.query({
    text: `
      select payload ->> 'owner' as owner, array_agg(position) as positions
      from refold.events
      where type = 'Opened' and payload ->> 'owner' <> 'early'
      group by 1
      having count(*) > 1 and max(position) > $1`,
    values: [after],
  });
}

/** Each letter is of an event that is older than the rule, and the table is right. */
async function expectHeld(held: Held, since: bigint): Promise<void> {
  await until(async () => (await statusOf(held.runtime, held.holder))?.inline === 'live');
  await held.runtime.versions.refresh();
  const letters = await listDeadLetters(tableOf(held));
  expect(letters.filter(({ position }) => position > since)).toEqual([]);
  expect(await verifyVersion(tableOf(held))).toMatchObject({ differences: 0 });
  await expect(open(held.runtime, randomUUID(), 'value 0')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
}

test('whatever happens to its versions, a value that many writers claim has one owner', async () => {
  const writers = effort(32, 4); // in each of two processes
  const rules = fc.constantFrom<UniqueRule>(
    { begins: 1, onError: 'stop' },
    { begins: 1, onError: 'dead-letter' },
    { begins: 2, onError: 'dead-letter' },
  );
  const steps = fc.array(fc.constantFrom(...names), { minLength: effort(12, 5), maxLength: effort(30, 8) });
  await fc.assert(
    fc.asyncProperty(rules, steps, async (rule, taken) => {
      const setting = await settingWithEarlyEvents(rule);
      const { url } = setting.database;
      const versions = uniqueOwners(rule);
      const [first, last] = versions;
      let started = 0;
      const startWriter = (upTo: number) => workers.start({ url, owner: `writer ${started++}`, writers, upTo, rule });
      const operator = await setting.start(
        defineConfig({ projections: versions.slice(0, rule.begins), events: [account] }),
      );
      const held: Held = { runtime: operator, holder: rule.begins === 1 ? first : last, last };
      await untilHolding(held);
      const since = await lastPosition(operator);
      let upTo: number = rule.begins;
      // If the second release adds the rule, a process of the first one goes on beside it.
      const writing: WorkerProcess[] = [await startWriter(1), await startWriter(upTo)];
      for (const transition of taken) {
        const before = await lastPosition(operator);
        switch (transition) {
          case 'a killed process':
            await writing.shift()?.end('SIGKILL');
            writing.push(await startWriter(upTo));
            break;
          case 'a process that is frozen for a while':
            writing[0]?.signal('SIGSTOP');
            // Its units go to the other one.
            await until(async () => (await lastPosition(operator)) > before);
            writing[0]?.signal('SIGCONT');
            break;
          case 'a process of the next release':
            upTo = 2;
            await writing.shift()?.end('SIGTERM');
            writing.push(await startWriter(upTo));
            break;
          default:
            await transitions[transition](held).catch(expectRefusal);
        }
        await until(async () => (await lastPosition(operator)) > before);
      }
      await Promise.all(writing.map((one) => one.end('SIGTERM')));
      expect(await duplicates(operator, since), `${JSON.stringify(rule)}: ${taken.join(', ')}`).toEqual([]);
      for (const { said } of writing) expect(said).toEqual([]);
      if ((await statusOf(operator, held.holder))?.state === 'active') await expectHeld(held, since);
      await setting.close();
    }),
    { numRuns: effort(5, 1), seed, endOnFailure: true },
  );
});

function expectRefusal(error: RefoldError): void {
  const refusals = ['INVALID_TRANSITION', 'UNIQUE_CHECK_UNAVAILABLE', 'DATABASE_ERROR', 'DATABASE_UNAVAILABLE'];
  expect(refusals, error.stack).toContain(error.code);
}

async function lastPosition({ db }: Runtime): Promise<bigint> {
  const [row] = await db.query<{ last: bigint | null }>({ text: 'select max(position) as last from refold.events' });
  return row?.last ?? 0n;
}
