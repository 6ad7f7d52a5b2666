import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { defineConfig, type RefoldError } from '../../../src/index.ts';
import { retryDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace, restoreSnapshot } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { effort } from '../../support/effort.ts';
import { expectRight, open, statusOf } from '../../support/inline-setting.ts';
import { createRuntimeSetting } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { uniqueOwner } from '../../support/unique-domain.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';

const workers = createWorkerProcesses('runtime/processors/unique-writer-process.ts');
afterEach(() => workers.killAll());

const readSchema = 'read_models';
const step = { actor: 'ann', reason: 'a test' };
const versions = [uniqueOwner(), uniqueOwner({ version: 2 })] as const;
const [holder, next] = versions;

/** What operators, deployments and accidents do to a version. They may be refused, for example while another one is under way. */
const transitions = {
  'a rebuild beside': (runtime) => requestRebuild(runtime.db, holder, readSchema, step),
  'a rebuild in place': (runtime) => rebuildInPlace(inPlace(runtime), step),
  'a snapshot': (runtime) => takeSnapshot({ db: runtime.db, readSchema, name: holder.name, version: 1 }, step),
  'a restored snapshot': (runtime) => restoreSnapshot(inPlace(runtime), step, 'latest'),
  'a retry of dead letters': ({ db, log }) => retryDeadLetters({ db, log, readSchema, projection: holder }, step),
  /** As `refold import` does. */
  async 'an import'({ log }) {
    const claims = Array.from({ length: 10 }, (_, n) => {
      const events = [{ type: 'Opened', payload: { owner: `value ${n * 3}` } }] as const;
      return { family: account, streamId: randomUUID(), events };
    });
    await log.appendInOrder(claims);
  },
  async 'a pause'(runtime) {
    await runtime.lifecycle.pause(holder.name, 1, step);
    await until(() =>
      runtime.lifecycle.resume(holder.name, 1, step).then(
        () => true,
        () => false, // its connection was ended
      ),
    );
  },
  async 'a retirement'(runtime) {
    if ((await statusOf(runtime, next))?.state === 'active') await runtime.lifecycle.retire(holder.name, 1, step);
  },
  async 'an end of the sessions that append'(runtime) {
    await runtime.db.query({
      text: `
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where datname = current_database() and application_name = 'refold-append'`,
    });
  },
  async 'an insert by SQL'(runtime) {
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
} satisfies Record<string, (runtime: Runtime) => Promise<unknown>>;

type Transition =
  | keyof typeof transitions
  | 'a killed process'
  | 'a process that is frozen for a while'
  | 'a process of the next release';

const inPlace = ({ db, log }: Runtime) => ({ db, log, readSchema, projection: holder });

/** The events that claim a value that another one has claimed. */
function duplicates({ db }: Runtime): Promise<{ owner: string; positions: bigint[] }[]> {
  return db.query({
    text: `
      select payload ->> 'owner' as owner, array_agg(position) as positions
      from refold.events
      where type = 'Opened'
      group by 1
      having count(*) > 1`,
  });
}

test('whatever happens to its versions, a value that many writers claim has one owner', async () => {
  const writers = effort(32, 4); // in each of two processes
  const steps = fc.array(
    fc.constantFrom<Transition>(
      ...(Object.keys(transitions) as (keyof typeof transitions)[]),
      'a killed process',
      'a process that is frozen for a while',
      'a process of the next release',
    ),
    { minLength: effort(12, 5), maxLength: effort(30, 8) },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      const setting = await createRuntimeSetting();
      const { url } = setting.database;
      const operator = await setting.start(defineConfig({ projections: versions.slice(0, 1), events: [account] }));
      let started = 0;
      const startWriter = (upTo: number) => workers.start({ url, owner: `writer ${started++}`, writers, upTo });
      const writing: WorkerProcess[] = [await startWriter(1), await startWriter(1)];
      let upTo = 1;
      for (const transition of taken) {
        const before = await written(operator);
        switch (transition) {
          case 'a killed process':
            await writing.shift()?.end('SIGKILL');
            writing.push(await startWriter(upTo));
            break;
          case 'a process that is frozen for a while':
            writing[0]?.signal('SIGSTOP');
            // Its units go to the other one.
            await until(async () => (await written(operator)) > before);
            writing[0]?.signal('SIGCONT');
            break;
          case 'a process of the next release':
            upTo = 2;
            await writing.shift()?.end('SIGTERM');
            writing.push(await startWriter(upTo));
            break;
          default:
            await transitions[transition](operator).catch((error: RefoldError) => expectRefusal(transition, error));
        }
        await until(async () => (await written(operator)) > before);
      }
      await Promise.all(writing.map((one) => one.end('SIGTERM')));
      expect(await duplicates(operator), taken.join(', ')).toEqual([]);
      for (const { said } of writing) expect(said).toEqual([]);
      if ((await statusOf(operator, holder))?.state === 'active') {
        await until(async () => (await statusOf(operator, holder))?.inline === 'live');
        await expectRight(operator, holder);
        await expect(open(operator, randomUUID(), 'value 0')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
      }
      await setting.close();
    }),
    { numRuns: effort(5, 1), seed, endOnFailure: true },
  );
});

function expectRefusal(transition: Transition, error: RefoldError): void {
  const refusals = ['INVALID_TRANSITION', 'UNIQUE_CHECK_UNAVAILABLE', 'DATABASE_ERROR', 'DATABASE_UNAVAILABLE'];
  expect(refusals, `${transition}: ${error.message}`).toContain(error.code);
}

async function written({ db }: Runtime): Promise<bigint> {
  const [row] = await db.query<{ events: bigint }>({ text: 'select count(*) as events from refold.events' });
  return row?.events ?? 0n;
}
