import fc from 'fast-check';
import { pino } from 'pino';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection, type Projection, t } from '../../../src/index.ts';
import { createProjectionProcessor } from '../../../src/runtime/processors/projection-processor.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { readDeadLetters } from '../../../src/store/processors/dead-letters.ts';
import { insertVersions } from '../../../src/store/registry/declared-versions.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { createReadSchema, createReadTable } from '../../../src/store/tables/read-table.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';

const parcel = defineEvents('parcel', {
  Sent: z.object({ tracking: z.string(), weight: z.int() }),
  Weighed: z.object({ weight: z.int() }),
  Relabelled: z.object({ tracking: z.string() }),
  Lost: z.object({}),
});

type Policy = 'stop' | 'skip' | 'dead-letter';

/** The least weight is kept, and a negative one keeps the row: what a check refuses stays refused, see the rule in docs/refused-rows.md. */
const parcels = (onError: Policy): Projection =>
  defineProjection({
    name: 'parcel',
    version: 1,
    events: parcel,
    table: { parcelId: t.text().primaryKey(), tracking: t.text().unique(), weight: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Sent: (row, { payload }) => ({ ...payload, weight: Math.min(row?.weight ?? 9, payload.weight) }),
      Weighed: (row, { payload }) => row && { ...row, weight: Math.min(row.weight, payload.weight) },
      Relabelled: (row, { payload }) => row && { ...row, ...payload },
      Lost: (row) => (row && row.weight <= 0 ? row : null),
    },
    onError,
  });

const { database, db, log } = await databaseOfFile(parcel);

beforeAll(async () => {
  await createReadSchema(db, 'read_models');
});

type ParcelEvent =
  | { readonly type: 'Sent'; readonly payload: { readonly tracking: string; readonly weight: number } }
  | { readonly type: 'Weighed'; readonly payload: { readonly weight: number } }
  | { readonly type: 'Relabelled'; readonly payload: { readonly tracking: string } }
  | { readonly type: 'Lost'; readonly payload: Record<string, never> };

const weight = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 4 }) },
  { weight: 1, arbitrary: fc.constant(-1) },
);
const tracking = fc.constantFrom('T-1', 'T-2', 'T-3');
const anyEvent: fc.Arbitrary<ParcelEvent> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('Sent' as const), payload: fc.record({ tracking, weight }) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('Weighed' as const), payload: fc.record({ weight }) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('Relabelled' as const), payload: fc.record({ tracking }) }) },
  { weight: 2, arbitrary: fc.constant({ type: 'Lost' as const, payload: {} }) },
);
const history = fc.array(fc.record({ streamId: fc.constantFrom('a', 'b', 'c', 'd'), event: anyEvent }), {
  minLength: 1,
  maxLength: 30,
});
/** The size of the next page, and its outcome: it is written, it waits for the next pages, or the process is killed after it. */
const pages = fc.array(
  fc.record({ size: fc.integer({ min: 1, max: 12 }), fate: fc.constantFrom('write', 'wait', 'kill') }),
  { minLength: 1, maxLength: 30 },
);

interface Outcome {
  readonly rows: readonly unknown[];
  readonly letters: readonly unknown[];
  readonly skipped: bigint;
  /** Where it stopped, as the number of the event. */
  readonly stoppedAt: number | null;
}

/** The rule: each event is folded by itself, and if a row is refused, the event has no effect on it. */
function oneByOne(all: readonly { streamId: string; event: ParcelEvent }[], policy: Policy): Outcome {
  const table = new Map<string, { tracking: string; weight: number }>();
  const blocked = new Set<string>();
  const letters: unknown[] = [];
  let skipped = 0n;
  let stoppedAt: number | null = null;
  for (const [index, { streamId, event }] of all.entries()) {
    if (blocked.has(streamId)) {
      letters.push([streamId, index, 'waits']);
      continue;
    }
    const before = table.get(streamId);
    const after = next(before, event);
    const taken = [...table].some(([id, row]) => id !== streamId && row.tracking === after?.tracking);
    if (after && (taken || after.weight <= 0)) {
      if (policy === 'stop') {
        stoppedAt = index;
        break;
      }
      if (policy === 'skip') skipped++;
      else {
        blocked.add(streamId);
        letters.push([streamId, index, 'failed']);
      }
    } else if (after) table.set(streamId, after);
    else table.delete(streamId);
  }
  const rows = [...table].map(([id, row]) => ({ parcel_id: id, ...row }));
  return { rows: rows.sort((a, b) => (a.parcel_id < b.parcel_id ? -1 : 1)), letters, skipped, stoppedAt };
}

function next(row: { tracking: string; weight: number } | undefined, event: ParcelEvent) {
  switch (event.type) {
    case 'Sent':
      return { ...event.payload, weight: Math.min(row?.weight ?? 9, event.payload.weight) };
    case 'Weighed':
      return row && { ...row, weight: Math.min(row.weight, event.payload.weight) };
    case 'Relabelled':
      return row && { ...row, ...event.payload };
    case 'Lost':
      return undefined;
  }
}

test.each([
  'stop',
  'skip',
  'dead-letter',
] as const)('the same rows are refused in batches of any size and after any kill: %s', async (policy) => {
  const projection = parcels(policy);
  const table = createReadTable(projection, 'read_models');
  const { name, version, tableName } = projection;
  await fc.assert(
    fc.asyncProperty(history, pages, fc.constantFrom('building', 'active'), async (all, plan, state) => {
      const start = await log.horizon();
      await database.administer('delete from refold.projections'); // no application does
      await db.query({ text: 'delete from refold.dead_letters' });
      await db.query({ text: 'delete from refold.changes' });
      await table.drop(db);
      await table.create(db);
      await db.query({ text: `alter table read_models.${tableName} add constraint has_weight check (weight > 0)` });
      await insertVersions(db, {
        name,
        version,
        tableSchema: 'read_models',
        tableName,
        tableFingerprint: '',
        codeFingerprint: '',
        partitions: 1,
        definition: { columns: [], keyColumns: [], filter: [], graphql: projection.graphql },
      });
      await db.query({ text: 'update refold.processors set checkpoint = $1', values: [start] });
      for (const { streamId, event } of all) await log.append({ family: parcel, streamId, events: [event] });
      const horizon = await log.horizon();
      const { events } = await log.readAll({ after: start, upTo: horizon, filter: projection.filter, limit: 100 });

      const begin = async () => {
        const claim = await claimProcessor(db, { kind: 'processor', name, version, partition: 0 }, 'test');
        return createProjectionProcessor({
          db,
          log,
          readSchema: 'read_models',
          projection,
          claim,
          state,
          freeze: true,
          logger: pino({ level: 'silent' }),
          onCaughtUp: async () => state,
        });
      };
      let processor = await begin();
      let after = start;
      let stopped = false;
      for (let turn = 0; after < horizon && !stopped; turn++) {
        const { size, fate } = plan[turn % plan.length] ?? { size: 1, fate: 'write' };
        // A process that is killed again and again would never finish.
        const ends = turn > 60 ? 'write' : fate;
        const page = await log.readAll({ after, upTo: horizon, filter: projection.filter, limit: size });
        const far = ends === 'write' ? page.upTo : 1_000_000_000n;
        const next = await processor.process({ ...page, after, horizon: far as typeof horizon });
        after = page.upTo;
        stopped = next === 'stop';
        if (ends !== 'kill' || stopped) continue;
        processor = await begin();
        after = processor.checkpoint;
      }
      if (!stopped) await processor.flush();
      const failed = processor.failure;

      const number = (position: unknown) => events.findIndex((event) => event.position === BigInt(String(position)));
      const kept = await readDeadLetters(db, tableName);
      const found: Outcome = {
        rows: await db.query({ text: `select * from read_models.${tableName} order by parcel_id` }),
        letters: kept.map(({ key, position, error }) => [key?.[0], number(position), error ? 'failed' : 'waits']),
        skipped: (await readRegistry(db))[0]?.eventsSkipped ?? -1n,
        stoppedAt: failed ? number(failed.fields.position) : null,
      };
      expect(found).toEqual(oneByOne(all, policy));
    }),
    { numRuns: effort(25, 8) },
  );
});
