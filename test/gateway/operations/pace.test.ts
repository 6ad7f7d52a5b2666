import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createPace } from '../../../src/gateway/operations/pace.ts';
import { createSchemaSource } from '../../../src/gateway/operations/served-schema.ts';
import type { VersionMap } from '../../../src/projections/projection/version-map.ts';
import { active } from '../../schema/in-memory-services.ts';
import { parcelV1, parcelV2 } from '../../schema/parcels.ts';

test('work runs at once until its burst is spent, and then in its share of the time', () => {
  let now = 0;
  const pace = createPace(0.2, 1000, () => now);
  pace.spent(700);
  expect(pace.wait()).toBe(0);
  pace.spent(700);
  expect(pace.wait()).toBe(2000);
  now += 2000;
  expect(pace.wait()).toBe(0);
  now += 60_000;
  pace.spent(1000);
  expect(pace.wait()).toBe(0);
});

test('while versions become active one by one, changes share a schema, and the last one is served in the end', async () => {
  let map = mapOf('0');
  let changed = () => {};
  let builds = 0;
  const source = createSchemaSource({
    versions: {
      current: () => map,
      pinned: () => map,
      onChange(listener) {
        changed = listener;
        return () => {};
      },
    },
    options() {
      builds++;
      // As long as a schema of hundreds of read models takes.
      for (const end = performance.now() + 600; performance.now() < end; );
      return { commands: [], maxPageSize: 100 };
    },
    logger: pino({ level: 'silent' }),
  });
  for (let change = 1; change <= 50; change++) {
    map = mapOf(String(change));
    changed();
  }
  expect(builds).toBeLessThan(5);
  await expect.poll(() => source.current().versions.revision, { timeout: 60_000 }).toBe('50');
  expect(builds).toBeLessThan(6);
  source.close();
});

function mapOf(revision: string): VersionMap {
  const served = active(Number(revision) % 2 === 0 ? parcelV1 : parcelV2);
  return { revision, served: new Map([['parcel', served]]) };
}
