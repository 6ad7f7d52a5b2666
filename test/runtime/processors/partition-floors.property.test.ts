import fc from 'fast-check';
import { pino } from 'pino';
import { beforeAll, expect, test } from 'vitest';
import { beginning } from '../../../src/events/global-position.ts';
import type { Projection } from '../../../src/index.ts';
import { fold, foldSteps } from '../../../src/projections/fold/fold.ts';
import { partitionOf, reachedBy } from '../../../src/projections/projection/partition.ts';
import { createProjectionProcessor } from '../../../src/runtime/processors/projection-processor.ts';
import { createSetBasedProcessor } from '../../../src/runtime/set-based/set-based-processor.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { changePartitions } from '../../../src/store/processors/partitions.ts';
import { insertVersions } from '../../../src/store/registry/declared-versions.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { createReadSchema, createReadTable } from '../../../src/store/tables/read-table.ts';
import { totalsByEvolve, totalsBySql } from '../../support/account-totals.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { account, balanceV1, openingsV1 } from '../../support/sample-domain.ts';

const events = 400;
const { database, db, log } = await databaseOfFile(account);

beforeAll(async () => {
  await traffic(log, events, seeded(4));
  await createReadSchema(db, 'read_models');
});

const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ partition: fc.nat({ max: 7 }), events: fc.integer({ min: 1, max: events }) }) },
    { weight: 1, arbitrary: fc.record({ partitions: fc.integer({ min: 1, max: 6 }) }) },
  ),
  { maxLength: 20 },
);

/** One owner of a partition folds some more events, and ends as if it were killed after a batch. */
async function goOn(projection: Projection, partition: number, count: number): Promise<void> {
  const { name, version } = projection;
  const claim = await claimProcessor(db, { kind: 'processor', name, version, partition }, 'test');
  const options = {
    db,
    log,
    readSchema: 'read_models',
    projection,
    claim,
    state: 'active',
    freeze: true,
    logger: pino({ level: 'silent' }),
    onCaughtUp: async () => 'active' as const,
  } as const;
  const { sqlFold } = projection;
  const processor = sqlFold
    ? createSetBasedProcessor({ ...options, fold: sqlFold })
    : createProjectionProcessor(options);
  const horizon = await log.horizon();
  const page = await log.readAll({ after: claim.checkpoint, upTo: horizon, filter: projection.filter, limit: count });
  await processor.process({ after: claim.checkpoint, upTo: page.upTo, events: page.events, horizon });
  await processor.flush();
}

/** `reference`: the form that folds event by event. */
const cases: readonly { readonly projection: Projection; readonly reference?: Projection }[] = [
  { projection: balanceV1 },
  { projection: openingsV1 },
  { projection: totalsBySql, reference: totalsByEvolve },
];

test.each(
  cases,
)('each event takes effect once, for any folding between changes of the number of partitions: $projection.name', async ({
  projection,
  reference = projection,
}) => {
  const { name, version } = projection;
  await fc.assert(
    fc.asyncProperty(steps, async (play) => {
      const table = createReadTable(projection, 'read_models');
      await database.administer('delete from refold.projections'); // no application does
      await db.query({ text: 'delete from refold.changes' });
      await table.drop(db);
      await table.create(db);
      await insertVersions(db, {
        name,
        version,
        tableSchema: 'read_models',
        tableName: projection.tableName,
        tableFingerprint: '',
        codeFingerprint: '',
        partitions: 2,
        definition: { columns: [], keyColumns: [], filter: [], graphql: projection.graphql },
      });
      const partitions = async () => (await readRegistry(db))[0]?.partitions ?? [];
      for (const step of play) {
        if ('partitions' in step) await db.transaction((tx) => changePartitions(tx, name, version, step.partitions));
        else await goOn(projection, step.partition % (await partitions()).length, step.events);
      }
      // Each row is in the partition that the registry states.
      const now = await partitions();
      const expected = await foldUpTo(reference, (text) => reachedBy(text, now));
      expect(await storedTable(db, projection)).toEqual(expected);

      for (const { partition } of now) await goOn(projection, partition, 2 * events);
      expect(await storedTable(db, projection)).toEqual(await foldedTable(log, reference));
      expect((await partitions()).every(({ floors }) => floors.length === 0)).toBe(true);
    }),
    { numRuns: effort(40, 10) },
  );
});

async function foldUpTo(projection: Projection, reached: (text: string) => bigint): Promise<Map<string, unknown>> {
  const rows = new Map();
  const memory = {
    get: (text: string) => rows.get(text) ?? null,
    set: (text: string, _: unknown, row: unknown) => void rows.set(text, row),
  };
  const page = await log.readAll({
    after: beginning,
    upTo: await log.horizon(),
    filter: projection.filter,
    limit: 2 * events,
  });
  const own = foldSteps(projection, page.events).filter(({ event, text }) => event.position <= reached(text));
  fold(projection, own, memory, { freeze: false });
  return new Map([...rows].flatMap(([text, row]) => (row ? [[text, projection.codec.encode(row)]] : [])));
}

test('the keys of the property fall into all partitions', () => {
  const own = new Set(Array.from({ length: 300 }, (_, index) => partitionOf(`["account-${index}"]`, 6)));
  expect(own.size).toBe(6);
});
