import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { RecordedEvent } from '../../../src/events/event.ts';
import { beginning, type GlobalPosition, globalPosition } from '../../../src/events/global-position.ts';
import { executeStep } from '../../../src/runtime/commands/execute-step.ts';
import { createStepNames } from '../../../src/runtime/commands/step-names.ts';
import { pruneAll } from '../../../src/runtime/processors/retention.ts';
import { createReactorOperations } from '../../../src/runtime/reactors/reactor-operations.ts';
import { insertReactor } from '../../../src/store/reactors/reactors.ts';
import { refoldTables, run } from '../../../src/store/statements/statement.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { account, openAccount } from '../../support/sample-domain.ts';

const { database, db, log } = await databaseOfFile(account);

const prune = () => pruneAll(db, 90, new AbortController().signal);

test('every table of the schema is documented, with what prunes it', async () => {
  const documented = readFileSync('docs/retention.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, table]) => table));
  const tables = await db.query<{ name: string }>({
    text: "select tablename as name from pg_tables where schemaname = 'refold'",
  });
  expect(documented.sort()).toEqual(tables.map(({ name }) => name).sort());
});

const columnOf = (text: string, values: readonly unknown[] = []) =>
  db.query<{ value: unknown }>({ text, values }).then((rows) => rows.map(({ value }) => value));

test('the data of a version is deleted when it is retired or has no owner any more', async () => {
  await db.query({
    text: `
      with version_of as (
        insert into refold.projections
          (name, version, state, table_schema, table_name, table_fingerprint, code_fingerprint, definition)
        values ('gone', 1, 'retired', 'read_models', 'gone_v1', '', '', '{}'), ('kept', 1, 'active', 'read_models', 'kept_v1', '', '', '{}')
      ), processor as (
        insert into refold.processors (name, version, partition, owner)
        select name, 1, 0, owner from unnest('{gone,kept}'::text[], '{null,somebody}'::text[]) of_version (name, owner)
      ), changed as (
        insert into refold.changes (name, version, partition, checkpoint, upserted, deleted, at)
        select name, 1, 0, minutes, '[]', '[]', now() - make_interval(mins => minutes)
        from unnest('{gone,kept}'::text[]) name
        cross join unnest('{5,16}'::int[]) minutes
      ), discarded as (
        insert into refold.discards (name, version, position, key, event_type, stream_id, actor, reason)
        select name, 1, 1, '"a"', 'Opened', 'a', 'ann', 'a test' from unnest('{gone,kept}'::text[]) name
      )
      insert into refold.runs (name, version, partition, kind, started_at, ended_at, from_position, to_position, events, rows, busy_ms)
      select name, 1, 0, 'projection', now() - make_interval(days => days), now(), 0, 1, 1, 1, 1
      from unnest('{gone,kept}'::text[]) name
      cross join unnest('{6,8}'::int[]) days`,
  });
  await db.query({
    text: `
      insert into refold.leases (kind, name, version, partition, holder, expires_at)
      values ('projection', 'gone', 1, 0, gen_random_uuid(), now() - interval '2 days'),
        ('projection', 'kept', 1, 0, gen_random_uuid(), now())`,
  });
  await prune();
  expect(await columnOf("select name || ' ' || checkpoint as value from refold.changes order by 1")).toEqual([
    'gone 5',
    'kept 16', // its owner prunes it
    'kept 5',
  ]);
  expect(await columnOf('select distinct now()::date - started_at::date as value from refold.runs')).toEqual([6]);
  expect(await columnOf('select name as value from refold.discards')).toEqual(['kept']);
  expect(await columnOf('select name as value from refold.leases')).toEqual(['kept']);
});

test('outcomes of steps are deleted when the reactor is past the event and has not been rewound to it', async () => {
  const reactors = createReactorOperations(db, log);
  const positions: GlobalPosition[] = [];
  const ages = [200, 150, 100, 10];
  for (const [index, days] of ages.entries()) {
    const opened = { type: 'Opened', payload: { owner: 'Ada' } } as const;
    const { events } = await log.append({ family: account, streamId: `s${index}`, events: [opened] });
    const event = events[0] as RecordedEvent; // one was appended
    positions.push(event.position);
    for (const name of ['welcome', 'wel_ome']) {
      const step = createStepNames({ name, commands: undefined }, event).ofCommand(openAccount);
      const input = { accountId: `${name}-${index}`, owner: 'Bob' };
      await executeStep({ db, log, step, metadata: {} }, openAccount, input);
    }
    const ago = `now() - interval '${days} days'`;
    // Events are never changed otherwise.
    await database.administer(`
      set session_replication_role = 'replica';
      update refold.events set recorded_at = ${ago} where position >= ${event.position};
      update refold.append_keys set recorded_at = ${ago} where key like '%${event.id}%'`);
  }
  const kept = async () => {
    const keys = await columnOf(
      "select round(extract(epoch from now() - recorded_at) / 86400)::int as value from refold.append_keys where key like 'openAccount:welcome/%' order by 1 desc",
    );
    const others = await columnOf("select key as value from refold.append_keys where key like '%:wel\\_ome/%'");
    expect(others).toHaveLength(4);
    return keys;
  };
  const [first, second, , fourth] = positions as [GlobalPosition, GlobalPosition, GlobalPosition, GlobalPosition];
  const step = { actor: 'ann', reason: 'a test' };
  const at = (position: GlobalPosition) =>
    db.query({ text: "update refold.reactors set checkpoint = $1 where name = 'welcome'", values: [position] });
  // It has yet to handle the second event, after months of failed attempts.
  await insertReactor(db, 'welcome', globalPosition(second - 1n));
  await prune();
  expect(await kept()).toEqual([150, 100, 10]);
  // It keeps the second event as a dead letter, and is past all others.
  await at(fourth);
  await db.query({
    text: "insert into refold.reactor_letters (reactor, position, key, event_type, stream_id, attempts) values ('welcome', $1, 's1', 'Opened', 's1', 3)",
    values: [second],
  });
  await prune();
  expect(await kept()).toEqual([150, 100, 10]);
  await db.query({ text: 'delete from refold.reactor_letters' });
  // Its handler waits; awaited events before it are needed no more.
  const waits = {
    ...{ reactor: 'welcome', position: second, event_id: '00000000-0000-4000-8000-000000000000', event_type: 'Opened' },
    ...{ stream_id: 's1', key: 's1', step: 'wait:until', work: 'step:wait.until:x', types: [], awaited_key: '' },
    ...{ received: [], due: null },
  };
  await run(db, refoldTables.insertInto('refold.reactor_instances').values(waits));
  await db.query({
    text: "insert into refold.awaited_events select 'welcome', 'k', 'Opened', position, id from refold.events where type = 'Opened' and stream_id like 's_'",
  });
  const awaited = () => columnOf('select position::int as value from refold.awaited_events order by 1');
  await prune();
  expect(await kept()).toEqual([150, 100, 10]);
  expect(await awaited()).toEqual(positions.slice(2).map(Number));
  await db.query({ text: 'delete from refold.reactor_instances' });
  await prune();
  expect(await kept()).toEqual([10]);
  expect(await awaited()).toEqual([]);

  await expect(reactors.rewind('welcome', beginning, step)).rejects.toMatchObject({
    code: 'INVALID_TRANSITION',
    message: expect.stringMatching(/^welcome would run steps again whose outcomes are forgotten: .*'runtime.stepDays'/),
  });
  await expect(reactors.rewind('welcome', first, step)).rejects.toMatchObject({ code: 'INVALID_TRANSITION' });
  await at(fourth);
  await reactors.rewind('welcome', globalPosition(fourth - 1n), step);
});
