import { keyText, storedIn } from '../../src/projections/projection/projection.ts';
import { readDeadLetters } from '../../src/store/processors/dead-letters.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { projectionOf } from '../domain.ts';
import { readExpectation } from '../expectation.ts';
import type { Evidence, Judge, JudgedStore } from './judge.ts';

export const deadLettersAreThoseExpected: Judge = {
  name: 'dead-letters-are-those-expected',
  promise: 'no dead letter is lost, doubled or made up: each row has its first failed event and all that follow it',
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
    const { letters } = await readExpectation(db, storedIn(projectionOf(name, version), tableName), events);
    const expected = new Map(letters.map(([key, position, failed]) => [`${key} at ${position}`, failed]));
    const seen = new Set<string>();
    for (const { key, position, error } of await readDeadLetters(db, tableName)) {
      const letter = `${key === null ? null : keyText(key)} at ${position}`;
      const where = `${name}@${version} (${tableName}), letter of ${letter}`;
      const failed = expected.get(letter);
      if (failed === undefined) found.push(`${where}: not expected`);
      else if (seen.has(letter)) found.push(`${where}: kept twice`);
      else if (failed && error === null) found.push(`${where}: failed, but kept without its error`);
      seen.add(letter);
    }
    for (const letter of expected.keys())
      if (!seen.has(letter)) found.push(`${name}@${version} (${tableName}), letter of ${letter}: lost`);
  }
  return found;
}
