import { isDeepStrictEqual } from 'node:util';
import { storedIn } from '../../src/projections/projection/projection.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { storedTable } from '../../test/support/folded-table.ts';
import { projectionOf } from '../domain.ts';
import { readExpectation } from '../expectation.ts';
import type { Evidence, Judge, JudgedStore } from './judge.ts';

export const tablesAreFolds: Judge = {
  name: 'tables-are-folds',
  promise: 'every read table equals one fold of the log without the dead letters that are kept or were discarded',
  async differences({ stores, events }) {
    const found = [];
    for (const store of stores) found.push(...(await differencesIn(store, events)));
    return found;
  },
};

async function differencesIn({ db }: JudgedStore, events: Evidence['events']): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { name, version, state, tableName } of await readRegistry(db)) {
    if (state === 'retired') continue;
    const projection = storedIn(projectionOf(name, version), tableName);
    const { rows: expected } = await readExpectation(db, projection, events);
    const stored = await storedTable(db, projection);
    for (const key of new Set([...expected.keys(), ...stored.keys()])) {
      const [wanted, there] = [expected.get(key), stored.get(key)];
      if (!isDeepStrictEqual(wanted, there))
        found.push(`${name}@${version} (${tableName}), row ${key}: expected ${text(wanted)}, found ${text(there)}`);
    }
  }
  return found;
}

function text(row: unknown): string {
  return row === undefined ? 'no row' : JSON.stringify(row);
}
