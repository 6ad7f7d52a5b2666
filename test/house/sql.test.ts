import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { describe, expect, test } from 'vitest';
import { assertedRows, quotedByHand, sqlOutsideStore } from './sql.ts';

const root = join(import.meta.dirname, '../../src');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const sources = new Map(files.map((file) => [file.replaceAll(sep, '/'), readFileSync(join(root, file), 'utf8')]));

test('all SQL text is in the store', () => {
  expect(sqlOutsideStore(sources)).toEqual([]);
});

test('the store quotes identifiers in one place', () => {
  expect(quotedByHand(sources)).toEqual([]);
});

test('the store asserts the type of a row in one place', () => {
  expect(assertedRows(sources)).toEqual([]);
});

describe('the check', () => {
  test.each([
    ["db.query({ text: 'select 1 from refold.events' })", 'select 1 from'],
    ['db.query({ text: `\n  with gone as (\n    delete from t\n  )` })', 'with gone as ('],
    ["db.query({ text: 'SELECT * FROM refold.events' })", 'SELECT * FROM'],
    ["db.query({ text: 'insert into t values (1)' })", 'insert into'],
    ["db.query({ text: 'update refold.events set type = 1' })", 'update refold.events set'],
    ["db.query({ text: 'delete from refold.events' })", 'delete from'],
    ['db.query({ text: `create table t (id text)` })', 'create table'],
    ["db.query({ text: `set local lock_timeout = '1s'` })", 'set local'],
    ["db.query({ text: 'select pg_notify($1, $2)' })", 'select pg_notify('],
  ])('finds the SQL of %s', (text, found) => {
    expect(sqlOutsideStore(new Map([['runtime/a.ts', text]]))).toEqual([
      `runtime/a.ts holds SQL ('${found}'), but all SQL lives in store/ and migrations/`,
    ]);
    expect(sqlOutsideStore(new Map([['store/log/a.ts', text]]))).toEqual([]);
  });

  test.each([
    "new Error('Select a column from the table.')",
    "throw refuse('.rows is a select from batch.')",
    '// delete from refold.events\nconst a = 1;',
    "const text = 'Subscriptions can select it, and update what they set aside';",
  ])('does not take %s for SQL', (text) => {
    expect(sqlOutsideStore(new Map([['runtime/a.ts', text]]))).toEqual([]);
  });

  test('finds an identifier that is quoted by hand, and no member of JSON', () => {
    const text = `const a = \`from "$\{schema}"."$\{table}"\`;\nconst json = \`{"id":"$\{id}"}\`;`;
    const sentence = (name: string) =>
      `store/tables/a.ts quotes "$\{${name}}" by hand; use sql.id, or quoted() of store/statements/identifiers.ts`;
    expect(quotedByHand(new Map([['store/tables/a.ts', text]]))).toEqual([sentence('schema'), sentence('table')]);
  });

  test.each([
    ['const [row] = await db.query<Row>({ text });\nreturn row as Facts;', 'row as Facts'],
    ['const rows = await runPrepared<Row>(db, query as CompiledQuery<never>);', 'query as CompiledQuery<never>'],
  ])('finds the asserted type in %s', (text, found) => {
    expect(assertedRows(new Map([['store/server/a.ts', text]]))).toEqual([
      `store/server/a.ts asserts '${found}'; declare the row type at the statement, and use onlyRow() for the row that is always there`,
    ]);
  });
});
