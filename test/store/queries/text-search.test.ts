import { expect, test } from 'vitest';
import { RefoldError } from '../../../src/errors.ts';
import type { Statement } from '../../../src/store/statements/statement.ts';
import { requireTextSearch } from '../../../src/store/tables/text-search.ts';
import { orderBook, shelfPlaces } from './order-book.ts';

/** A database that has an ICU collation or not, and in which the extension can't be created. */
function database(hasIcu: boolean) {
  const asked: string[] = [];
  return {
    asked,
    async query<Row extends object>({ text }: Statement): Promise<Row[]> {
      asked.push(text);
      if (text.startsWith('create extension'))
        throw new RefoldError('DATABASE_ERROR', 'permission denied to create extension "pg_trgm"', {
          sqlState: '42501',
        });
      return text.includes('pg_collation') && hasIcu ? [{} as Row] : []; // only the number of rows is read
    },
  };
}

test('a searchable column is refused if the database can’t search it, and the error names the way out', async () => {
  await expect(requireTextSearch(database(true), orderBook)).rejects.toMatchObject({
    code: 'DATABASE_UNSUITABLE',
    message: expect.stringMatching(
      /^order_book@1: column 'title' .* needs PostgreSQL's extension pg_trgm, .*\(permission denied.*'create extension pg_trgm'.* or declare it with \.index\(\)\.$/,
    ),
  });
  await expect(requireTextSearch(database(false), orderBook)).rejects.toMatchObject({
    code: 'DATABASE_UNSUITABLE',
    message: expect.stringMatching(/built with ICU/),
  });
});

test('the database is not queried if no column is searchable', async () => {
  const db = database(false);
  await requireTextSearch(db, shelfPlaces);
  expect(db.asked).toEqual([]);
});
