import { setTimeout as pause } from 'node:timers/promises';
import { storedIn } from '../../src/projections/projection/projection.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import type { FeedClient } from '../clients/feeds.ts';
import { rowText } from '../clients/row-text.ts';
import { projectionOf } from '../domain.ts';
import { readExpectation } from '../expectation.ts';
import type { Evidence, Judge } from './judge.ts';

export const feedsAreFolds: Judge = {
  name: 'feeds-are-folds',
  promise: 'at rest, each copy kept by a change feed equals the fold; a feed is reset only for a stated reason',
  async differences(evidence) {
    const found: string[] = [];
    for (const client of evidence.feeds) {
      found.push(
        ...client.problems.map(({ text }) => `the ${client.name} ${text}`),
        ...resetDifferences(client, evidence),
      );
      found.push(...(await copyDifferences(client, evidence)));
    }
    return found;
  },
};

/** The feed states its own reason. If it says that history has changed, that must be true. */
function resetDifferences({ name, resets }: FeedClient, { ledger }: Evidence): readonly string[] {
  return resets
    .filter(({ at, reason }) => ['HISTORY_CHANGED', 'AHEAD'].includes(reason) && ledger.cuts.every(({ to }) => at < to))
    .map(({ reason }) => `the ${name} got ${reason}, but no tail was lost`);
}

/** Waits, because a client may just have been disconnected. */
async function copyDifferences(
  { name, feed, copy }: FeedClient,
  { db, stores, events, feedPatienceMs }: Evidence,
): Promise<readonly string[]> {
  const projection = projectionOf(feed.projection, 1);
  const registered = await Promise.all(
    stores.map(async (store) => (await readRegistry(store.db)).map((version) => ({ ...version, in: store.db }))),
  );
  const stored = registered.flat().find(({ name, version }) => name === projection.name && version === 1);
  // A rebuild folds the retried events of the previous table again.
  const { rows } = await readExpectation(
    stored?.in ?? db,
    storedIn(projection, stored?.tableName ?? projection.tableName),
    events,
  );
  const expected = new Map(
    [...rows.values()].map((row) => {
      const columns = row as Readonly<Record<string, unknown>>; // as the codec encodes them
      return [String(columns[feed.key]), rowText(feed.columns, columns)];
    }),
  );
  const deadline = performance.now() + feedPatienceMs;
  for (;;) {
    const found = [...new Set([...expected.keys(), ...copy.keys()])]
      .filter((key) => expected.get(key) !== copy.get(key))
      .map(
        (key) =>
          `the ${name} has ${key}: ${copy.get(key) ?? 'no row'}; expected ${expected.get(key) ?? 'no row (a ghost)'}`,
      );
    if (found.length === 0 || performance.now() > deadline) return found;
    await pause(50);
  }
}
