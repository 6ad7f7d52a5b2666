import { expect, test } from 'vitest';
import { underEnvironment } from '../../src/config/environment.ts';
import { shareStoreConnections } from '../../src/config/read-store-options.ts';
import { defineConfig, defineProjection, many, one, type Projection, t } from '../../src/index.ts';
import { totalsBySql } from '../support/account-totals.ts';
import { account, balanceV1, balanceV2, inPartitions } from '../support/sample-domain.ts';

const url = 'postgres://db.example/analytics';
const inStore = <P extends Projection>(projection: P, store = 'analytics'): P =>
  Object.freeze({ ...projection, store });

function configured(projections: readonly Projection[], readStores: object = { analytics: { url } }) {
  return defineConfig({ projections, readStores: readStores as Record<string, { url: string }> });
}

test('a store has a name, a URL and a number of connections', () => {
  const { readStores } = configured([inStore(balanceV1)]);
  expect(readStores).toEqual({ analytics: { url, maxConnections: 26, maxReadLag: 1000 } });
  expect(Object.isFrozen(readStores) && Object.isFrozen(readStores.analytics)).toBe(true);
  expect(configured([balanceV1], {}).readStores).toEqual({});
  const refused: readonly (readonly [object, string])[] = [
    [{ default: { url } }, `readStores.default is the database of the log, which 'database' configures.`],
    [{ Analytics: { url } }, `readStores has a store 'Analytics'. Name it in lower case`],
    [{ analytics: {} }, `readStores.analytics.url is missing`],
    [{ analytics: { url: 'mysql://db' } }, `readStores.analytics.url is not a PostgreSQL URL`],
    [{ analytics: { url, readsUrl: url } }, `unknown option 'readsUrl' of readStores.analytics.`],
    [{ analytics: { url, maxConnections: 5 } }, `readStores.analytics.maxConnections is a whole number from 6 to 1000`],
    [{ analytics: url }, `readStores.analytics is an object such as`],
  ];
  for (const [stores, problem] of refused)
    expect(() => configured([], stores), problem).toThrow(
      expect.objectContaining({ code: 'INVALID_CONFIG', message: expect.stringContaining(problem) }),
    );
});

test('a store may have a replica, unless it is a Citus cluster', () => {
  const readUrl = 'postgres://replica.example/analytics';
  const withReplica = (options: object) => configured([], { analytics: { url, ...options } }).readStores.analytics;
  expect(withReplica({ readUrl })).toEqual({ url, readUrl, maxConnections: 26, maxReadLag: 1000 });
  expect(withReplica({ readUrl, maxReadLag: 50 })).toMatchObject({ readUrl, maxReadLag: 50 });
  const readStores = JSON.stringify({ analytics: { url, readUrl, maxReadLag: 70 } });
  const byEnvironment = underEnvironment(defineConfig({}), { REFOLD_READ_STORES: readStores });
  expect(byEnvironment.readStores.analytics).toMatchObject({ readUrl, maxReadLag: 70 });
  const refused: readonly (readonly [object, string])[] = [
    [{ readUrl: 'mysql://db' }, 'readStores.analytics.readUrl is not a PostgreSQL URL'],
    [{ readUrl: 7 }, 'readStores.analytics.readUrl is not a PostgreSQL URL'],
    [{ readUrl, maxReadLag: 9 }, 'readStores.analytics.maxReadLag is a whole number from 10 to 3600000'],
    [{ maxReadLag: 50 }, 'readStores.analytics.maxReadLag is for a replica; name it with readStores.analytics.readUrl'],
    [
      { readUrl, placement: 'schema' },
      "readStores.analytics.readUrl is a replica, which can't be used with 'placement'",
    ],
  ];
  for (const [options, problem] of refused)
    expect(() => withReplica(options), problem).toThrow(
      expect.objectContaining({ code: 'INVALID_CONFIG', message: expect.stringContaining(problem) }),
    );
});

test('a process has enough connections to each store for the admin page, too', () => {
  const admin = { tokens: [{ name: 'ada', token: 'a-token-of-ada-who-may-read', rights: 'read' as const }] };
  const withAdmin = (maxConnections: number) =>
    defineConfig({ readStores: { analytics: { url, maxConnections } }, gateway: { admin } });
  expect(() => withAdmin(7)).toThrow(
    'readStores.analytics.maxConnections is 7; this application needs 8 in a process: 2 for batches, 2 for reads, 1 for ownership, 1 for notifications, 2 for the admin page.',
  );
  const [store = expect.unreachable()] = Object.values(withAdmin(8).readStores);
  expect(shareStoreConnections(store, { admin })).toEqual({ work: 2, reads: 2 });
  expect(shareStoreConnections(store, { admin: undefined })).toEqual({ work: 3, reads: 3 });
  expect(configured([], { analytics: { url, maxConnections: 6 } }).readStores).toMatchObject({ analytics: {} });
});

test('the store of the configuration is that of all projections that name none, and inline ones stay with the log', () => {
  const inline = defineProjection({ ...cards, mode: 'inline' });
  const atHome = defineProjection({ ...cards, name: 'kept', store: 'default' });
  const options = { projections: [balanceV1, inline, atHome], readStores: { analytics: { url } } };
  const placed = defineConfig({ ...options, store: 'analytics' });
  expect(placed.projections.map(({ id, store }) => [id, store])).toEqual([
    ['balance@1', 'analytics'],
    ['card@1', 'default'],
    ['kept@1', 'default'],
  ]);
  const byEnvironment = underEnvironment(defineConfig(options), { REFOLD_STORE: 'analytics' });
  expect(byEnvironment.projections.map(({ store }) => store)).toEqual(['analytics', 'default', 'default']);
  expect(() => defineConfig({ ...options, store: 'analytic' })).toThrow(
    "'store' is 'analytic', which is not among 'readStores'. Did you mean 'analytics'?",
  );
});

test('a version names a store that is configured', () => {
  expect(() => configured([inStore(balanceV1, 'analytic')])).toThrow(
    "balance@1: its store 'analytic' is not among 'readStores' of the configuration. Did you mean 'analytics'?",
  );
});

const cards = {
  name: 'card',
  version: 1,
  events: account,
  table: { cardId: t.text().primaryKey(), accountId: t.text().index() },
  key: (event: { streamId: string }) => event.streamId,
  evolve: { Opened: () => null },
} as const;

test('rows that commit with the append stay with the log', () => {
  expect(() => defineProjection({ ...cards, mode: 'inline', store: 'analytics' })).toThrow(
    "card@1: mode 'inline' writes rows in the transaction of the append, and the store 'analytics' is another database than that of the log.",
  );
  expect(defineProjection({ ...cards, mode: 'inline', store: 'default' }).store).toBe('default');
  expect(() => defineProjection({ ...cards, store: 7 as unknown as string })).toThrow(
    "'store' is a name of 'readStores'",
  );
});

test('a relation needs a version of its target in the same store', () => {
  const card = defineProjection({ ...cards, relations: { balance: one('balance', { from: 'accountId' }) } });
  expect(() => configured([inStore(card), balanceV1])).toThrow(
    "card@1: relation 'balance' leads to 'balance', of which no version is in the same store 'analytics'.",
  );
  const withCards = Object.freeze({
    ...balanceV1,
    relations: { cards: { ...many('card', { to: 'accountId' }), from: 'accountId' } },
  });
  expect(() => configured([defineProjection(cards), inStore(withCards)])).toThrow("balance@1: relation 'cards'");
  // During a move, versions in both stores are declared.
  configured([card, balanceV1, inStore(balanceV2), inStore({ ...card, version: 2, id: 'card@2' })]);
});

test('versions that are compared with the one that answers are in its store', () => {
  const compared = (activation: object) => {
    const declared = defineProjection({ ...cards, version: 2, activation, store: 'analytics' });
    return configured([defineProjection(cards), declared]);
  };
  expect(() => compared({ compareWith: 'previous' })).toThrow(
    "card@2: activation.compareWith compares it with the version that answers, in one snapshot. card@1 is in the store 'default', and this version in 'analytics'.",
  );
  compared({ verify: true });
});

test('a version whose rows a cluster distributes has nothing that needs rows of several workers, and one of one partition has all', () => {
  const distributed =
    (projection: Projection, ...others: readonly Projection[]) =>
    () =>
      configured([inStore(inPartitions(projection, 4)), ...others.map((one) => inStore(one))], {
        analytics: { url, placement: 'partition' },
      });
  const related = defineProjection({
    name: 'related',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey() },
    key: (event) => event.streamId,
    evolve: { Opened: () => ({}) },
    relations: { balance: one('balance', { from: 'accountId' }) },
  });
  const ready = { ...balanceV2, activation: { ...balanceV2.activation, comparedColumns: ['owner'] } };
  const refused: readonly (readonly [() => unknown, string])[] = [
    [
      distributed(related, balanceV1),
      'related@1: its 4 partitions are distributed over the workers of a Citus cluster',
    ],
    [distributed(related, balanceV1), "it has the relation 'balance': related rows would be on several workers"],
    [distributed(balanceV1, related), 'it has a relation from related@1: related rows would be on several workers'],
    [
      distributed(totalsBySql),
      "it has 'evolveSql': its statement would have to join rows of several workers. Use 'evolve', leave 'partitions' out",
    ],
    [distributed(ready), "it has 'activation.compareWith': two versions are compared in one snapshot"],
    [
      distributed({ ...balanceV1, snapshots: { everyEvents: 10, keep: 1 } }),
      "it has 'snapshots': they are of one position",
    ],
  ];
  for (const [configure, problem] of refused)
    expect(configure, problem).toThrow(
      expect.objectContaining({ code: 'INVALID_DECLARATION', message: expect.stringContaining(problem) }),
    );
  expect(distributed(balanceV1)).not.toThrow();
  const together = [related, balanceV1, totalsBySql].map((one) => inStore(one));
  expect(() => configured(together, { analytics: { url, placement: 'partition' } })).not.toThrow();
});
