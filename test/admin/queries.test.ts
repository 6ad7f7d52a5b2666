import { afterAll, beforeAll, expect, test } from 'vitest';
import { account, balanceV1, openingsV1 } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';
import { type AdminUnderTest, startAdmin } from './admin-under-test.ts';

let admin: AdminUnderTest;

beforeAll(async () => {
  admin = await startAdmin({ projections: [balanceV1, openingsV1] });
  for (const streamId of ['a', 'b'])
    await admin.refold.log.append({
      family: account,
      streamId,
      events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
      metadata: { correlationId: `of-${streamId}` },
    });
  await until(async () => (await admin.refold.status()).every(({ state, lag }) => state === 'active' && lag === 0n));
});
afterAll(() => admin.close());

test('the overview counts versions by health, and names processes, leases, connections and who answers', async () => {
  const { overview } = await admin.data(`{
    overview {
      at head horizon appendsPerSecond versionCount health { health count } deadLetters { value isExact }
      stalls { text } processes { name role versions owns startedAt } lostOwners { name } leases { unit owner }
      connections { limit used groups { applicationName state count } } answers { projection version canary processes }
    }
  }`);
  expect(overview).toMatchObject({
    head: '2',
    horizon: '2',
    versionCount: 2,
    health: [{ health: 'CURRENT', count: 2 }],
    deadLetters: { value: 0, isExact: true },
    processes: [{ name: 'admin-test', role: 'all' }],
    answers: [
      { projection: 'balance', version: 'balance@1', canary: null, processes: ['admin-test'] },
      { projection: 'openings', version: 'openings@1', canary: null, processes: ['admin-test'] },
    ],
  });
  expect(overview.connections.used).toBeGreaterThan(0);
});

test('a version has everything that operators need to know of it', async () => {
  const { version } = await admin.data(`{
    version(id: "balance@1") {
      id projection number state health isDeclared answers inline startsAfter position head lag lagEvents { value isExact } lagSeconds
      progress eventsPerSecond etaSeconds lagTrend(minutes: 5, points: 3) { at lag } eventsFolded eventsSkipped retries
      retrying { position } owner partitions { number processor owner position lag error { message } } error { message }
      heldReason paused { by } canary { text } shadow { same } rebuild { form } verification { kind } deadLetters { value isExact }
      missingIndexes history(first: 2) { items { of operation actor reason from to } next } runs(first: 1) { items { kind events } next }
      snapshots { id } table { name rows bytes indexes { name definition isValid } } columns { name type isKey isHidden } keyColumns
      pins { client } actions
    }
  }`);
  expect(version).toMatchObject({
    id: 'balance@1',
    state: 'ACTIVE',
    health: 'CURRENT',
    answers: true,
    isDeclared: true,
    lag: '0',
    progress: 1,
    eventsFolded: '2',
    keyColumns: ['accountId'],
  });
  expect(version.lagTrend).toHaveLength(3);
  expect(version.history.items).toHaveLength(2);
  expect(version.runs.items[0].kind).toBe('processor');
  expect(version.table.indexes[0].isValid).toBe(true);
  expect(version.actions).toContain('PAUSE');
  const { items } = (await admin.data('{ versions(search: "open") { items { id } next } }')).versions;
  expect(items).toEqual([{ id: 'openings@1' }]);
});
