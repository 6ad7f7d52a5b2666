import { expect, test } from 'vitest';
import { defineConfig } from '../../../src/index.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account, balanceV1, balanceV2 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();

const owned = (ownership: 'advisory' | 'lease', projections = [balanceV1]) =>
  defineConfig({ projections, runtime: { ownership } });

const namedProcesses = async ({ db }: Runtime) => {
  const rows = await db.query<{ name: string }>({ text: 'select name from refold.processes order by name' });
  return rows.map(({ name }) => name);
};

const append = ({ log }: Runtime, streamId: string) =>
  log.append({ family: account, streamId, events: [{ type: 'Opened', payload: { owner: 'ada' } }] });

test('a process with another kind of ownership is refused while others run, and leaves nothing behind', async () => {
  const first = await setting.start(owned('lease'), { owner: 'first' });
  await until(async () => (await first.status())[0]?.owner === 'first');
  const epochs = () => first.db.query({ text: 'select epoch from refold.processors' });
  const before = await epochs();
  const refused = setting.start(owned('advisory', [balanceV1, balanceV2]), { owner: 'second' });
  await expect(refused).rejects.toMatchObject({
    code: 'OPTION_DIFFERS',
    message: expect.stringMatching(
      /^runtime\.ownership is 'advisory', and first runs with 'lease': .* Set 'lease' here\. To change it, stop all processes/,
    ),
    fields: { option: 'runtime.ownership', found: 'advisory', expected: 'lease', processes: ['first'] },
  });
  expect(await namedProcesses(first)).toEqual(['first']);
  expect((await readRegistry(first.db)).map(({ version }) => version)).toEqual([1]);
  const { position } = await append(first, 'a');
  await first.positions.waitFor(balanceV1, position, { timeout: 300_000 });
  expect(await epochs()).toEqual(before);

  // A gateway maintains nothing, so its option changes nothing.
  await setting.start(owned('advisory'), { owner: 'gateway', maintain: false });
  // The way to change it.
  await setting.stop(first);
  const changed = await setting.start(owned('advisory'), { owner: 'changed' });
  await until(async () => (await changed.status())[0]?.owner === 'changed');
});

test('of processes with two kinds of ownership that start at once, those of one kind are refused', async () => {
  const kinds = ['lease', 'advisory', 'lease', 'advisory'] as const;
  const starts = await Promise.allSettled(
    kinds.map((kind, index) => setting.start(owned(kind), { owner: `${index}` })),
  );
  const running = new Set(kinds.filter((_, index) => starts[index]?.status === 'fulfilled'));
  expect(running.size).toBe(1);
  for (const [index, start] of starts.entries())
    if (start.status === 'rejected') {
      expect(start.reason).toMatchObject({ code: 'OPTION_DIFFERS' });
      expect([...running]).not.toContain(kinds[index]);
    }
});

test('processes that maintain nothing in common may differ in their ownership', async () => {
  await setting.start(owned('lease'), { owner: 'first' });
  await setting.start(owned('advisory', [balanceV1, balanceV2]), { owner: 'second', only: ['balance@2'] });
});

test('a process of an older release, which does not say its kind, is not compared', async () => {
  const older = await setting.start(owned('lease'), { owner: 'older' });
  await older.db.query({ text: 'update refold.processes set ownership = null' });
  await setting.start(owned('advisory'), { owner: 'newer' });
});

const inSchema = (readSchema: string) => defineConfig({ projections: [balanceV1], database: { readSchema } });

test('a process with another read schema is refused, whether it maintains or serves', async () => {
  const first = await setting.start(inSchema('read_models'), { owner: 'first' });
  for (const maintain of [true, false])
    await expect(setting.start(inSchema('wrong'), { owner: 'second', maintain })).rejects.toMatchObject({
      code: 'OPTION_DIFFERS',
      message: expect.stringMatching(
        /^database\.readSchema is 'wrong', and the read tables, such as that of balance@1, are in the schema 'read_models'\. Set /,
      ),
      fields: { option: 'database.readSchema', found: 'wrong', expected: 'read_models' },
    });
  const { position } = await append(first, 'a');
  await first.positions.waitFor(balanceV1, position, { timeout: 300_000 });
  expect(await first.db.query({ text: 'select status, owner from refold.processors' })).toEqual([
    { status: 'running', owner: 'first' },
  ]);
  expect(await namedProcesses(first)).toEqual(['first']);
  const schemas = await first.db.query({ text: "select from pg_namespace where nspname = 'wrong'" });
  expect(schemas).toEqual([]);
});

test('the read schema gets another name by the statements of the page on operating', async () => {
  const first = await setting.start(inSchema('read_models'), { owner: 'first' });
  const { position } = await append(first, 'a');
  await first.positions.waitFor(balanceV1, position, { timeout: 300_000 });
  await setting.stop(first);
  await setting.database.administer(`
    begin;
    alter schema read_models rename to models;
    update refold.projections set table_schema = 'models' where table_schema = 'read_models';
    update refold.old_tables set table_schema = 'models' where table_schema = 'read_models';
    update refold.table_snapshots set table_schema = 'models' where table_schema = 'read_models';
    commit`);
  const second = await setting.start(inSchema('models'), { owner: 'second' });
  const next = await append(second, 'b');
  await second.positions.waitFor(balanceV1, next.position, { timeout: 300_000 });
  expect(await second.db.query({ text: 'select from models.balance' })).toHaveLength(2);
});
