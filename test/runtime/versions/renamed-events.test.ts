import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  CommandRejected,
  type Config,
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  defineReactor,
  defineState,
  type Projection,
  type RecordedEvent,
  t,
} from '../../../src/index.ts';
import { checkStoredDeclarations } from '../../../src/runtime/activation/check-declarations.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { verifyPayloads } from '../../../src/runtime/verification/verify-payloads.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { readBlockedKeys } from '../../../src/store/reactors/reactor-letters.ts';
import { guest } from '../../docs/renamed-guests.ts';
import { storedTable } from '../../support/folded-table.ts';
import { reaches, registered, settingOfEachTest } from '../../support/runtime-setting.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const { stop } = setting;

function start(config: Config, owner = 'test'): Promise<Runtime> {
  return setting.start(config, { owner });
}

// The code of both deployments. Only names differ.
const arrival = z.object({ room: z.string() });
const payment = z.object({ amount: z.int() });
type Stay = { readonly guestId: string; readonly rooms: readonly string[]; readonly paid: number };
const table = { guestId: t.text().primaryKey(), rooms: t.list(t.text()), paid: t.integer() };
const totals = { guestId: t.text().primaryKey(), arrivals: t.integer(), paid: t.integer() };
const moveIn = (row: Stay | null, event: { readonly payload: { readonly room: string } }) => ({
  rooms: [...(row?.rooms ?? []), event.payload.room],
  paid: row?.paid ?? 0,
});
const pay = (row: Stay | null, event: { readonly payload: { readonly amount: number } }) => ({
  rooms: [...(row?.rooms ?? [])],
  paid: (row?.paid ?? 0) + event.payload.amount,
});
const keyOf = (event: { readonly streamId: string }) => event.streamId;
const countSql = (family: string, arrived: string) => `
  select
    stream_id as guest_id,
    count(*) filter (where family = '${family}' and type = '${arrived}')::int as arrivals,
    coalesce(sum((payload->>'amount')::int) filter (where type = 'Paid'), 0)::int as paid
  from batch
  group by stream_id`;
const nextRoom = (rooms: number, room: string) => {
  if (rooms >= 3) throw new CommandRejected('no more rooms');
  return room;
};
const input = z.object({ guestId: z.string(), room: z.string() });

// Before the rename.
const visitor = defineEvents('visitor', { Arrived: arrival, Paid: payment });

/** The types name what is declared as after the rename, also before it. */
function deployment(family: typeof guest, arrived: 'CheckedIn', handled: RecordedEvent[], further: Projection[]) {
  const state = defineState(
    family,
    () => ({ rooms: 0 }),
    { [arrived]: ({ rooms }) => ({ rooms: rooms + 1 }) },
    { snapshotEvery: 1 },
  );
  const checkIn = defineCommand({
    name: 'checkIn',
    input,
    state,
    stream: ({ guestId }) => guestId,
    decide: ({ room }, { rooms }) => ({ type: arrived, payload: { room: nextRoom(rooms, room) } }),
  });
  const evolve = { [arrived]: moveIn, Paid: pay };
  const stays = defineProjection({
    name: 'stays',
    version: 1,
    events: family,
    table,
    key: keyOf,
    evolve,
    partitions: 2,
  });
  const current = defineProjection({
    name: 'current',
    version: 1,
    mode: 'inline',
    events: family,
    table,
    key: keyOf,
    evolve,
  });
  const counted = defineProjection({
    name: 'counted',
    version: 1,
    events: family,
    table: totals,
    evolveSql: {
      events: [arrived, 'Paid'],
      rows: countSql(family.name, arrived),
      merge: { arrivals: 'add', paid: 'add' },
    },
  });
  const welcome = defineReactor({
    name: 'welcome',
    events: family,
    from: 'beginning',
    handle: { [arrived]: async (event: RecordedEvent) => void handled.push(event) },
  });
  const config = defineConfig({
    projections: [stays, current, counted, ...further],
    commands: [checkIn],
    reactors: [welcome],
  });
  return { family, checkIn, stays, current, counted, config };
}

const beforeRename = (handled: RecordedEvent[] = []) =>
  deployment(visitor as unknown as typeof guest, 'Arrived' as 'CheckedIn', handled, []); // their own names

const afterRename = (handled: RecordedEvent[] = [], ...further: Projection[]) =>
  deployment(guest, 'CheckedIn', handled, further);

describe('an event type and a family that were renamed', () => {
  test('are one and the same for old and new processes that run side by side', async () => {
    const handled: RecordedEvent[] = [];
    const v2 = defineProjection({
      name: 'stays',
      version: 2,
      events: guest,
      table,
      key: keyOf,
      evolve: { CheckedIn: moveIn, Paid: pay },
    });
    const [old, now] = [beforeRename(handled), afterRename(handled, v2)];
    expect([now.stays.codeFingerprint, now.current.codeFingerprint]).toEqual([
      old.stays.codeFingerprint,
      old.current.codeFingerprint,
    ]);
    const first = await start(old.config, 'old');
    await first.execute(old.checkIn, { guestId: 'ann', room: '1' }, { idempotencyKey: 'ann-1' });
    const second = await start(now.config, 'new');
    await reaches(second, v2, 'active');

    // Both write to the same streams, each on what the other has written.
    const expected = new Map<string, { rooms: string[]; paid: number }>([['ann', { rooms: ['1'], paid: 0 }]]);
    let last = first.log.horizon();
    for (let n = 0; n < 24; n++) {
      const guestId = ['ann', 'bob', 'cy', 'dee'][n % 4] ?? '';
      const stay = expected.get(guestId) ?? { rooms: [], paid: 0 };
      expected.set(guestId, stay);
      const isOld = (n * 7) % 3 === 0;
      if (n % 5 === 0) {
        const paid = { streamId: guestId, events: [{ type: 'Paid', payload: { amount: n } } as const] };
        last = (
          isOld ? first.log.append({ family: old.family, ...paid }) : second.log.append({ family: now.family, ...paid })
        ).then(({ position }) => position);
        stay.paid += n;
      } else {
        const command = { guestId, room: `${n}` };
        const result = isOld ? first.execute(old.checkIn, command) : second.execute(now.checkIn, command);
        if (stay.rooms.length === 3) await expect(result).rejects.toThrow('no more rooms');
        else {
          last = result.then(({ position }) => position);
          stay.rooms.push(`${n}`);
        }
      }
      await last;
    }
    const rows = new Map(
      [...expected].map(([guestId, { rooms, paid }]) => [JSON.stringify([guestId]), { guestId, rooms, paid }]),
    );
    // Read your own writes: each process waits for a position that the other may have written.
    for (const { runtime, app } of [
      { runtime: first, app: old },
      { runtime: second, app: now },
    ]) {
      for (const projection of [app.stays, app.current, app.counted])
        await runtime.positions.waitFor(projection, await last);
      expect(await storedTable(runtime.db, app.stays)).toEqual(rows);
      expect(await storedTable(runtime.db, app.current)).toEqual(rows);
    }
    const counts = [...expected].map(
      ([guestId, { rooms, paid }]) => [JSON.stringify([guestId]), { guestId, arrivals: rooms.length, paid }] as const,
    );
    expect(await storedTable(second.db, now.counted)).toEqual(new Map(counts));
    await second.positions.waitFor(v2, await last);
    expect(await storedTable(second.db, v2)).toEqual(rows);

    // An execution that one process repeats for another returns the same result, under the names of each.
    const again = await second.execute(now.checkIn, { guestId: 'ann', room: '1' }, { idempotencyKey: 'ann-1' });
    expect(again.events).toMatchObject([{ family: 'guest', type: 'CheckedIn', streamPosition: 1 }]);
    const arrivals = [...expected.values()].reduce((sum, { rooms }) => sum + rooms.length, 0);
    await until(() => new Set(handled.map(({ id }) => id)).size === arrivals);
    for (const { family, type } of handled)
      expect(['visitor/Arrived', 'guest/CheckedIn']).toContain(`${family}/${type}`);

    expect(await second.db.query({ text: 'select distinct family, type from refold.events order by type' })).toEqual([
      { family: 'visitor', type: 'Arrived' },
      { family: 'visitor', type: 'Paid' },
    ]);
    expect(await second.db.query({ text: 'select count(*)::int as streams from refold.streams' })).toEqual([
      { streams: 4 },
    ]);
    expect(setting.messages.filter((line) => /^The log holds|its key or evolve|it now reads/.test(line))).toEqual([]);
    await stop(first);

    for (const projection of [now.stays, now.counted]) {
      const found = await verifyVersion({
        db: second.db,
        log: second.log,
        readSchema: 'read_models',
        projection,
        oneOf: 1,
      });
      expect(found).toMatchObject({ differences: 0, rowsCompared: 4 });
    }
    // With the five payments.
    expect(await verifyPayloads(second.log)).toMatchObject({ events: arrivals + 5, problems: 0 });
    const serving = (await registered(second, now.stays))?.tableName;
    await requestRebuild(second.db, now.stays, 'read_models', { actor: 'ann', reason: 'a test' });
    await until(async () => (await registered(second, now.stays))?.tableName !== serving);
    const rebuilt = { ...now.stays, tableName: (await registered(second, now.stays))?.tableName ?? '' };
    expect(await storedTable(second.db, rebuilt)).toEqual(rows);
    const lag = await second.db.query({ text: 'select distinct events from refold.lag' });
    expect(lag).toEqual([{ events: 0n }]);
    // Its SQL names the types, so it is another text. Nothing else is found.
    expect(await checkStoredDeclarations(second.db, now.config)).toMatchObject([
      { kind: 'problem', message: expect.stringMatching(/^counted@1: the SQL of its evolveSql/) },
    ]);
  });

  test('hold back the same streams behind a dead letter of a reactor', async () => {
    const handled: string[] = [];
    const failing = (family: typeof guest, fails: boolean) =>
      defineConfig({
        reactors: [
          defineReactor({
            name: 'post',
            events: family,
            from: 'beginning',
            handle: async ({ streamId }) => {
              if (fails) throw new Error('no post office');
              handled.push(streamId);
            },
            onError: { policy: 'dead-letter', retries: [] },
          }),
        ],
      });
    const { family } = beforeRename();
    const first = await start(failing(family, true));
    await first.log.append({ family, streamId: 'ann', events: [{ type: 'Paid', payload: { amount: 1 } }] });
    await until(async () => (await readBlockedKeys(first.db, 'post')).size === 1);
    await stop(first);
    const second = await start(failing(guest, false));
    await second.log.append({ family: guest, streamId: 'ann', events: [{ type: 'Paid', payload: { amount: 2 } }] });
    await second.log.append({ family: guest, streamId: 'bob', events: [{ type: 'Paid', payload: { amount: 3 } }] });
    await until(() => handled.length > 0);
    expect(handled).toEqual(['bob']);
    expect([...(await readBlockedKeys(second.db, 'post')).keys()]).toEqual(['visitor/ann']);
  });

  test('warn once if a version has left out events that were written before the rename was declared', async () => {
    const first = await start(beforeRename().config);
    await first.log.append({ family: visitor, streamId: 'ann', events: [{ type: 'Arrived', payload: { room: '1' } }] });
    const checkedIn = defineEvents('visitor', { CheckedIn: arrival });
    const early = createEventLog(first.db, [checkedIn]);
    await early.append({ family: checkedIn, streamId: 'ann', events: [{ type: 'CheckedIn', payload: { room: '2' } }] });
    await stop(first);
    const warnings = () => setting.messages.filter((line) => line.includes('it now reads'));
    await stop(await start(afterRename().config));
    expect(warnings()).toContain(
      "stays@1: it now reads visitor.CheckedIn, too. Its rows may leave out such events of the past: 'refold rebuild stays@1' builds them from all events.",
    );
    const found = warnings().length;
    await stop(await start(afterRename().config));
    expect(warnings()).toHaveLength(found);
  });
});
