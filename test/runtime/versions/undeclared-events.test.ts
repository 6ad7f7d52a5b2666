import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineConfig, defineEvents, defineProjection, t } from '../../../src/index.ts';
import { checkStoredDeclarations } from '../../../src/runtime/activation/check-declarations.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { storedTable } from '../../support/folded-table.ts';
import { reaches, registered, settingOfEachTest } from '../../support/runtime-setting.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const { start, stop } = setting;

const stay = z.object({ room: z.string() });
const table = { guestId: t.text().primaryKey(), room: t.text() };
const keyOf = (event: { readonly streamId: string }) => event.streamId;

const guest = defineEvents('guest', { Arrived: stay, Left: stay });
const guestV1 = defineProjection({
  name: 'guest',
  version: 1,
  events: guest,
  table,
  key: keyOf,
  evolve: { Arrived: (_, { payload }) => payload },
});

/** A log with events of the first deployment, which has ended. */
async function deployed(): Promise<void> {
  const runtime = await start(defineConfig({ projections: [guestV1] }));
  for (const streamId of ['ann', 'bob'])
    await runtime.log.append({ family: guest, streamId, events: [{ type: 'Arrived', payload: { room: '1' } }] });
  await reaches(runtime, guestV1, 'active');
  await stop(runtime);
}

/** The next deployment, in which `Arrived` is `CheckedIn`: the version that serves, with its handler renamed, and the next one. */
function next(name: string, options: { was?: string[]; types?: { CheckedIn: { was: string[] } } } = {}) {
  const family = defineEvents(name, { CheckedIn: stay, Left: stay }, options);
  const version = (number: number) =>
    defineProjection({
      name: 'guest',
      version: number,
      events: family,
      table,
      key: keyOf,
      evolve: { CheckedIn: (_, { payload }) => payload },
    });
  const v2 = version(2);
  return { family, v2, config: defineConfig({ projections: [version(1), v2] }) };
}

const renamed = { types: { CheckedIn: { was: ['Arrived'] } } };

test('event types that nobody declares are named at start-up and by refold check, and a version that reads nothing because of it is held', async () => {
  await deployed();
  const { family, v2, config } = next('guest');
  const runtime = await start(config);
  const message =
    "The log holds events that this program does not declare, so nothing here reads them: guest.Arrived. If a name was changed, declare the former one: defineEvents('guest', …, { types: { NewName: { was: ['Arrived'] } } }). Otherwise ignore this.";
  expect(setting.messages).toContain(message);
  await until(async () => (await registered(runtime, v2))?.heldReason);
  // It reads new events under the new name. That does not make it complete.
  const checkedIn = { type: 'CheckedIn', payload: { room: '2' } } as const;
  await runtime.log.append({ family, streamId: 'cy', events: [checkedIn] });
  await reaches(runtime, v2, 'ready');
  expect((await registered(runtime, v2))?.heldReason).toBe(
    "It reads none of the events that the log held when it was declared, and the log holds guest.Arrived, which nothing here declares. If a name was changed, declare the former one, defineEvents('guest', …, { types: { NewName: { was: ['Arrived'] } } }), and run 'refold rebuild guest@2'. 'refold activate guest@2' activates it as it is.",
  );
  const findings = await checkStoredDeclarations(runtime.db, config);
  expect(findings).toContainEqual({ kind: 'note', message });
  expect(findings.map((one) => one.message)).toContainEqual(
    expect.stringMatching(/^guest@2 is held at ready: It reads none/),
  );
  await stop(runtime);

  // The way out that the reason names.
  const before = setting.messages.length;
  const declared = next('guest', renamed);
  const fixed = await start(declared.config);
  await requestRebuild(fixed.db, declared.v2, 'read_models', { actor: 'ann', reason: 'renamed' });
  await reaches(fixed, declared.v2, 'active');
  const tableName = (await registered(fixed, declared.v2))?.tableName ?? '';
  const rows = await storedTable(fixed.db, { ...declared.v2, tableName });
  expect([...rows.keys()].sort()).toEqual(['["ann"]', '["bob"]', '["cy"]']);
  expect(setting.messages.slice(before).filter((line) => line.startsWith('The log holds'))).toEqual([]);
});

test('a version of a family that nobody declares any more is held, until an operator activates it', async () => {
  await deployed();
  const { v2, config } = next('resident');
  const runtime = await start(config);
  expect(setting.messages).toContainEqual(expect.stringContaining("defineEvents('new_name', …, { was: ['guest'] })"));
  await until(async () => (await registered(runtime, v2))?.heldReason?.includes("{ was: ['guest'] }"));
  await runtime.lifecycle.activate('guest', 2, { actor: 'ann', reason: 'as it is' });
  expect((await registered(runtime, v2))?.state).toBe('active');
});

test('undeclared events hold no version that reads events of the past, and none of a new family', async () => {
  await deployed();
  const events = defineEvents('guest', { Arrived: stay, CheckedIn: stay });
  const left = await start(defineConfig({ projections: [guestV1] }));
  await left.log.append({ family: guest, streamId: 'ann', events: [{ type: 'Left', payload: { room: '1' } }] });
  await stop(left);
  const invoice = defineEvents('invoice', { Sent: stay });
  const of = { version: 1, table, key: keyOf } as const;
  const arrivals = defineProjection({
    ...of,
    name: 'arrivals',
    events,
    evolve: { Arrived: (_, { payload }) => payload },
  });
  const invoices = defineProjection({
    ...of,
    name: 'invoices',
    events: invoice,
    evolve: { Sent: (_, { payload }) => payload },
  });
  const again = defineProjection({ ...of, name: 'guest', events, evolve: { Arrived: (_, { payload }) => payload } });
  const runtime = await start(defineConfig({ projections: [arrivals, invoices, again] }));
  expect(setting.messages).toContainEqual(expect.stringContaining('nothing here reads them: guest.Left.'));
  for (const projection of [arrivals, invoices]) await reaches(runtime, projection, 'active');
});

test('a family that would have its streams under two names is refused at start-up and by refold check', async () => {
  await deployed();
  const { family } = next('resident');
  const undeclared = await start(defineConfig({ events: [family], projections: [guestV1] }));
  await undeclared.log.append({ family, streamId: 'ann', events: [{ type: 'Left', payload: { room: '1' } }] });
  const { config } = next('resident', { was: ['guest'], ...renamed });
  const message =
    "defineEvents('resident'): the log holds streams of 'guest' and of 'resident'. They are different streams, also where their ids are equal, so one family can't have both. Declare them as two families; a projection can read several.";
  await expect(start(config)).rejects.toMatchObject({ code: 'INVALID_DECLARATION', message });
  expect(await checkStoredDeclarations(undeclared.db, config)).toContainEqual({ kind: 'problem', message });
  await expect(start(next('guest', { was: ['host'], ...renamed }).config)).rejects.toThrow(
    "defineEvents('guest'): the log holds streams of 'guest' and none of 'host', the first name in 'was'. Remove the names before 'guest' from 'was'.",
  );
});
