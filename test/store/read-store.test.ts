import { expect, test } from 'vitest';
import { RefoldError } from '../../src/errors.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { noNotifications } from '../../src/store/postgres/notifications.ts';
import { type ReadStore, readEachStore, readStores } from '../../src/store/read-store.ts';

const stores = ['default', 'analytics', 'archive'].map((name): ReadStore => {
  const url = 'postgres://127.0.0.1:1/never-connected';
  const db = createDatabase({ url });
  return { name, url, db, reads: db, notifications: noNotifications };
});
const [home = expect.unreachable(), ...apart] = stores;
const unavailable = new RefoldError('DATABASE_UNAVAILABLE', 'PostgreSQL does not respond.');

test('a list over all stores names those that do not respond, and does not ask those that are known not to', async () => {
  const asked: string[] = [];
  const read = async ({ name }: ReadStore) => {
    asked.push(name);
    if (name === 'analytics') throw unavailable;
    return name;
  };
  expect(await readEachStore(readStores(home, apart), read)).toEqual({
    found: ['default', 'archive'],
    away: ['analytics'],
  });
  asked.splice(0);
  const silent = () => new Set(['archive']);
  expect(await readEachStore({ ...readStores(home, apart), silent }, read)).toEqual({
    found: ['default'],
    away: ['analytics', 'archive'],
  });
  expect(asked.toSorted()).toEqual(['analytics', 'default']);
});

test('without the store of the log there is no list, and any other error is an error', async () => {
  const failing = (of: string, error: RefoldError) =>
    readEachStore(readStores(home, apart), async ({ name }) => {
      if (name === of) throw error;
    });
  await expect(failing('default', unavailable)).rejects.toBe(unavailable);
  const refused = new RefoldError('DATABASE_ERROR', 'permission denied');
  await expect(failing('archive', refused)).rejects.toBe(refused);
});
