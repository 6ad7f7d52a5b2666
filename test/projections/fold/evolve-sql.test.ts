import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection, t } from '../../../src/index.ts';

// Each @ts-expect-error marks a compile error: `npm run typecheck` fails if there is none.

const bank = defineEvents('bank', {
  Deposited: z.object({ amount: z.string() }),
  Withdrawn: z.object({ amount: z.string() }),
});
const base = {
  name: 'balance',
  version: 1,
  events: bank,
  table: { accountId: t.text().primaryKey(), amount: t.decimal(14, 2), lastAt: t.timestamptz() },
} as const;
const evolveSql = {
  events: ['Deposited'],
  rows: 'select stream_id as account_id, 1 as amount, max(recorded_at) as last_at from batch group by 1',
  merge: { amount: 'add', lastAt: 'max' },
} as const;

test('a projection declares SQL over its batches instead of key and evolve', () => {
  const balance = defineProjection({ ...base, evolveSql });
  expect(balance.filter).toEqual([{ family: 'bank', types: ['Deposited'] }]);
  expect(balance.sqlFold).toEqual({ stages: [], rows: evolveSql.rows, merge: evolveSql.merge, remove: null });
});

test('its code fingerprint is that of its SQL', () => {
  const fingerprint = (change: object) =>
    defineProjection({ ...base, evolveSql: { ...evolveSql, ...change } }).codeFingerprint;
  const others = [
    { events: ['Withdrawn'] as const },
    { rows: `${evolveSql.rows} having count(*) > 1` },
    { merge: { ...evolveSql.merge, amount: 'last' } },
    { remove: 'merged.amount = 0' },
    { stages: { part: 'select 1' }, rows: evolveSql.rows.replace('batch', 'part') },
  ];
  expect(fingerprint({})).toBe(fingerprint({}));
  expect(new Set([fingerprint({}), ...others.map(fingerprint)]).size).toBe(others.length + 1);
});

describe('a declaration that cannot work is a compile error and a start-up error', () => {
  test('with both forms, or with neither', () => {
    const key = () => 'a';
    // @ts-expect-error only one of them is allowed
    expect(() => defineProjection({ ...base, key, evolve: { Deposited: () => null }, evolveSql })).toThrow(
      "balance@1: declares both 'evolve' and 'evolveSql'; keep one, and prove it equal to the other in a test.",
    );
    // @ts-expect-error one of them is required
    expect(() => defineProjection({ ...base })).toThrow(
      "balance@1: declares neither 'evolve' nor 'evolveSql'; declare one of them.",
    );
  });

  test('with undefined events', () => {
    // @ts-expect-error an undefined type
    expect(() => defineProjection({ ...base, evolveSql: { ...evolveSql, events: ['Deposit'] } })).toThrow(
      "balance@1: evolveSql.events names 'Deposit', which bank does not define. Did you mean 'Deposited'?",
    );
    expect(() => defineProjection({ ...base, evolveSql: { ...evolveSql, events: [] } })).toThrow(
      'balance@1: evolveSql.events names no event type; name those that the batch contains.',
    );
  });

  test('with columns that are not merged, or do not exist', () => {
    // @ts-expect-error lastAt is missing
    expect(() => defineProjection({ ...base, evolveSql: { ...evolveSql, merge: { amount: 'add' } } })).toThrow(
      "balance@1: evolveSql.merge leaves out 'lastAt'; say how the batch's value is merged into the table's, such as 'add' or 'last'.",
    );
    const withMerge = (merge: object) =>
      defineProjection({ ...base, evolveSql: { ...evolveSql, merge: { ...evolveSql.merge, ...merge } } });
    expect(() => withMerge({ lastAd: 'max' })).toThrow(
      "balance@1: evolveSql.merge names 'lastAd', which the table does not declare. Did you mean 'lastAt'?",
    );
    expect(() => withMerge({ accountId: 'last' })).toThrow(
      "balance@1: evolveSql.merge names 'accountId', a key column; the key finds the row.",
    );
    expect(() => withMerge({ lastAt: 'add' })).toThrow('evolveSql.merge.lastAt adds, but the column is timestamptz.');
    expect(() => withMerge({ lastAt: 'newest' })).toThrow(
      "balance@1: evolveSql.merge.lastAt is 'newest'; expected 'add', 'min', 'max', 'first', 'last', 'replace' or { sql }.",
    );
    expect(() => withMerge({ amount: { sql: 'old.amount + $1' } })).toThrow(
      "evolveSql.merge.amount.sql holds a parameter such as $1; a declaration's SQL takes none.",
    );
  });

  test('with invalid SQL, or unknown options', () => {
    expect(() => defineProjection({ ...base, evolveSql: { ...evolveSql, rows: 'delete from batch' } })).toThrow(
      "balance@1: evolveSql.rows is a select from 'batch'.",
    );
    const staged = (stages: Record<string, string>, rows = 'select * from part') =>
      defineProjection({ ...base, evolveSql: { ...evolveSql, rows, stages } });
    expect(() => staged({ part: 'insert into batch' })).toThrow('balance@1: evolveSql.stages.part is a select.');
    expect(() => staged({ batch: 'select 1' })).toThrow(
      "balance@1: evolveSql.stages has 'batch'; a stage is named in snake_case, and not 'batch'.",
    );
    expect(() => staged({ other: 'select 1 from part', part: 'select 1' })).toThrow(
      "balance@1: evolveSql.stages.other is read by no later stage and not by 'rows'.",
    );
    // @ts-expect-error a stage is a text
    expect(() => staged({ part: 1 })).toThrow('balance@1: evolveSql.stages.part is a text of SQL.');
    const misspelt = { ...evolveSql, removed: 'true' };
    expect(() => defineProjection({ ...base, evolveSql: misspelt })).toThrow(
      "balance@1: unknown option 'removed' of evolveSql. Did you mean 'remove'?",
    );
  });

  test('with features that set-based SQL does not support', () => {
    expect(() => defineProjection({ ...base, evolveSql, onError: 'dead-letter' })).toThrow(
      "balance@1: onError 'dead-letter' with evolveSql needs 'key': if the SQL fails on an event, only 'key' knows the row whose later events must wait.",
    );
    const key = (event: { readonly streamId: string }) => event.streamId;
    expect(defineProjection({ ...base, key, evolveSql, onError: 'dead-letter' }).onError.policy).toBe('dead-letter');
    const table = { ...base.table, amount: t.decimal(14, 2).default('0') };
    expect(() => defineProjection({ ...base, table, evolveSql })).toThrow(
      "balance@1: evolveSql must return every value, but column 'amount' has a default. Write coalesce(…) in the SQL instead.",
    );
  });
});
