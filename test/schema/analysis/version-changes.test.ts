import { describe, expect, test } from 'vitest';
import cartApp from '../../../examples/shopping-cart/app.ts';
import { type Columns, defineProjection, many, type Projection, t } from '../../../src/index.ts';
import { breakingText, foldChanges } from '../../../src/schema/fold-changes.ts';
import { versionChanges } from '../../../src/schema/version-changes.ts';
import { account } from '../../support/sample-domain.ts';
import { breakingChanges } from './breaking-changes.ts';

const columns = { accountId: t.text().primaryKey(), owner: t.text().index(), amount: t.decimal(10, 2) };

/** Any columns: only the GraphQL side matters. */
function balance(version: number, table: Columns, more = {}): Projection {
  return defineProjection({
    name: 'balance',
    version,
    events: account,
    table: table as typeof columns,
    key: (event) => event.streamId,
    evolve: { Opened: (row) => row },
    ...more,
  });
}

const between = (older: Projection, newer: Projection, others: readonly Projection[] = []) =>
  breakingChanges(older, newer, { projections: [older, newer, ...others], commands: [], maxPageSize: 100 });

test('everything that clients can no longer select is listed, the row’s own fields first', () => {
  const { amount: _, ...rest } = columns;
  const changes = between(balance(1, columns), balance(2, rest));
  expect(changes[0]).toBe('Balance.amount was removed.');
  expect(changes.length).toBeGreaterThan(1);
});

test('a field that becomes nullable, a removed index and a key of another type are breaking; additions are not', () => {
  const nullable = { ...columns, owner: t.text().nullable().index() };
  expect(between(balance(1, columns), balance(2, nullable))).toContain(
    'Balance.owner changed type from String! to String.',
  );
  const unindexed = { ...columns, owner: t.text() };
  expect(between(balance(1, columns), balance(2, unindexed))).toContain('BalanceFilter.owner was removed.');
  const otherKey = { ...columns, accountId: t.uuid().primaryKey() };
  expect(between(balance(1, columns), balance(2, otherKey))).toContain(
    'BalanceFilter.accountId changed type from IDFilter to UUIDFilter.',
  );
  const added = { ...columns, currency: t.text().index(), amount: t.decimal(10, 2).index() };
  expect(between(balance(1, columns), balance(2, added))).toEqual([]);
});

test('a removed relation is breaking, and changes of other projections do not count', () => {
  const owners = (version: number, table: Record<string, unknown>) =>
    defineProjection({
      name: 'owner',
      version,
      events: account,
      table: table as { owner: ReturnType<typeof t.text> },
      key: (event) => event.streamId,
      evolve: { Opened: (row) => row },
    });
  const related = { relations: { owners: many('owner', { to: 'owner', from: 'owner' }) } };
  const others = [
    owners(1, { id: t.text().primaryKey(), owner: t.text().index(), gone: t.text() }),
    owners(2, { id: t.text().primaryKey(), owner: t.text().index() }),
  ] as const;
  expect(between(balance(1, columns, related), balance(2, columns), others)).toContain('Balance.owners was removed.');
  expect(between(balance(1, columns, related), balance(2, columns, related), others)).toEqual([]);
});

describe('a consequence of a change', () => {
  const folded = (older: Projection, newer: Projection) => {
    const changes = versionChanges(older, newer, { projections: [older, newer], commands: [], maxPageSize: 100 });
    const heads = foldChanges(changes).map(({ head }) => head);
    return { heads: heads.map(({ origin, message }) => [origin, message]), breaking: breakingText(changes) };
  };
  const wide = {
    ...columns,
    openedAt: t.timestamptz().index(),
    trackingId: t.text().unique(),
    size: t.object({ width: t.integer(), owner: t.text() }),
    kind: t.enum(['current', 'savings']).index(),
    fee: t.decimal(10, 2).index(),
  };

  test('is folded under the column, types and look-ups too', () => {
    const { amount: _, openedAt: __, trackingId: ___, fee: ____, ...rest } = wide;
    const { heads, breaking } = folded(balance(1, wide), balance(2, rest));
    expect(heads).toEqual([
      ['Balance.amount', 'Balance.amount was removed.'],
      ['Balance.openedAt', 'Balance.openedAt was removed.'],
      ['Balance.trackingId', 'Balance.trackingId was removed.'],
      ['Balance.fee', 'Balance.fee was removed.'],
    ]);
    expect(breaking).toBe('4 breaking changes');
  });

  test('is one change if only the index of a column is removed, or its type changes', () => {
    const unindexed = { ...wide, kind: t.enum(['current', 'savings']), accountId: t.uuid().primaryKey() };
    const { heads, breaking } = folded(balance(1, wide), balance(2, unindexed));
    expect(heads.map(([origin]) => origin).toSorted()).toEqual(['Balance.accountId', 'Balance.kind']);
    expect(breaking).toBe('2 breaking changes');
  });

  test('differs from a change within an object or an enum of the row, which counts separately', () => {
    const other = {
      ...wide,
      size: t.object({ width: t.integer() }),
      kind: t.enum(['current']).index(),
    };
    const { heads, breaking } = folded(balance(1, wide), balance(2, other));
    expect(heads.toSorted()).toEqual([
      ['BalanceKind.savings', 'savings was removed from enum type BalanceKind.'],
      ['BalanceSize.owner', 'BalanceSize.owner was removed.'],
    ]);
    expect(breaking).toBe('2 breaking changes');
  });

  test('is folded under the type of the row if that has another name', () => {
    const { heads } = folded(balance(1, columns), balance(2, columns, { graphql: { type: 'Account' } }));
    const origins = heads.map(([origin]) => origin);
    expect(origins).toEqual(expect.arrayContaining(['Balance', 'Account']));
    expect(origins.filter((origin) => !/^(Balance|Account|Query\.\w+|Subscription\.\w+)$/.test(origin ?? ''))).toEqual(
      [],
    );
  });
});

test('the second version of the sample breaks no client of the first', () => {
  const { projections, commands, gateway } = cartApp;
  const [v1, v2] = projections.filter(({ name }) => name === 'cart_summary');
  if (!v1 || !v2) throw new Error('the sample has two versions of cart_summary');
  const options = { projections, commands, maxPageSize: gateway.maxPageSize };
  expect(breakingChanges(v1, v2, options)).toEqual([]);
  expect(breakingChanges(v2, v1, options)).toContain('CartSummary.status was removed.');
});
