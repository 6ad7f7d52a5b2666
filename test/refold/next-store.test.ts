import { afterEach, expect, test } from 'vitest';
import type { Projection, Refold } from '../../src/index.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { seeded, traffic } from '../support/account-traffic.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { nextIn } from '../support/next-version.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { seed } from '../support/seed.ts';
import { active, answer, caughtUp, inStore, open, storeSetting } from '../support/store-setting.ts';
import { until } from '../support/until.ts';

// Read models move to another store as their next versions.
const setting = storeSetting();
const { said, start, follow } = setting;
const step = { actor: 'test', reason: 'the old disk is full' };
const feedField = 'balanceChanges { reset cursor changes { operation key { accountId } } }';

/** An operator activates it. */
function next(projection: Projection): Projection {
  const { activation } = projection;
  return Object.freeze({ ...nextIn('analytics', projection), activation: { ...activation, by: 'manual' as const } });
}

const both = [balanceV1, openingsV1];
const nextBoth = both.map(next);

/** Does it again and again until stopped. `stop` fails if it has failed. */
function repeat(work: () => Promise<unknown>) {
  let working = true;
  let count = 0;
  const loop = (async () => {
    for (; working; count++) await work();
  })();
  loop.catch(() => {}); // `stop` reports it
  const repeating = {
    get count() {
      return count;
    },
    async stop() {
      working = false;
      await loop;
    },
  };
  repeated.push(repeating);
  return repeating;
}
const repeated: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of repeated.splice(0)) await one.stop();
});

async function rowsOf(app: Refold): Promise<number> {
  return (await answer(app, '{ balances(first: 100) { totalCount } }')).balances.totalCount;
}

async function ready(app: Refold, ...ids: string[]): Promise<void> {
  await until(async () => {
    const versions = await app.status();
    return ids.every((id) => versions.some((one) => `${one.name}@${one.version}` === id && one.state === 'ready'));
  });
}

test('related read models move together under traffic: no query fails, no change is missed, and the rows are the fold of the log', async () => {
  const before = await start({ projections: both });
  await active(before, 'balance@1', 'openings@1');
  const random = seeded(seed);
  await traffic(before.log, 200, random);
  const app = await start({ projections: [...both, ...nextBoth] });
  const feeds = [before, app].map((one) => follow(one, feedField));
  // It reads one store at every moment, because both versions become active in one transaction.
  const queries = repeat(async () => {
    for (const one of [before, app])
      await answer(one, '{ balances(first: 5) { nodes { amount } } openings(owner: "*") { opened } }');
  });
  const appends = repeat(() => traffic(app.log, 10, random));
  await ready(app, 'balance@2', 'openings@2');
  await app.lifecycle.activate('balance', 2, step, { along: [{ name: 'openings', version: 2 }] });
  await active(app, 'balance@2', 'openings@2');
  const { position } = await app.log.append({
    family: account,
    streamId: 'last',
    events: [{ type: 'Opened', payload: { owner: 'ada' } }],
  });
  for (const one of [before, app])
    await answer(one, `query @after(position: "${position}") { balance(accountId: "last") { owner } }`);
  await appends.stop();
  const counted = queries.count;
  await until(() => queries.count > counted + 3);
  await queries.stop();
  for (const projection of nextBoth) {
    await caughtUp(app, projection.id);
    expect(await storedTable(setting.store, projection)).toEqual(await foldedTable(app.log, projection));
  }
  const count = await rowsOf(app);
  for (const feed of feeds) await until(() => feed.rows.size === count);
});

test('of versions that are to become active together, none does if one is not ready, or if they are in two stores', async () => {
  const app = await start({ projections: [...both, ...nextBoth] });
  await ready(app, 'balance@2', 'openings@2');
  const activate = (along: string, version: number) =>
    app.lifecycle.activate('balance', 2, step, { along: [{ name: along, version }] });
  await expect(activate('openings', 3)).rejects.toThrow(/openings@3/);
  await expect(activate('openings', 1)).rejects.toThrow(
    "balance@2 is in the store 'analytics' and openings@1 in 'default': only versions of one store become active together. Activate those of each store on their own.",
  );
  await app.lifecycle.pause('openings', 2, step);
  await expect(activate('openings', 2)).rejects.toThrow(/openings@2 is paused/);
  const states = async () =>
    (await readRegistry(setting.store)).map(({ name, version, state }) => `${name}@${version} ${state}`);
  expect(await states()).toEqual(['balance@2 ready', 'openings@2 ready']);
  await app.lifecycle.resume('openings', 2, step);
  await activate('openings', 2);
  expect(await states()).toEqual(['balance@2 active', 'openings@2 active']);
});

test('while the other store is away, processes without its versions answer from the former ones', async () => {
  const app = await start({ projections: [balanceV1, inStore(balanceV2)] });
  await active(app, 'balance@1', 'balance@2');
  await open(app, 'a', 'b');
  await caughtUp(app, 'balance@2');
  expect(await rowsOf(app)).toBe(2);
  await setting.server.kill();
  const errors = await until(async () => (await app.graphql('{ balances { totalCount } }')).errors);
  expect(errors[0]?.extensions.code).toBe('DATABASE_UNAVAILABLE');
  const without = await start({ projections: [balanceV1] });
  await caughtUp(without, 'balance@1');
  expect(await rowsOf(without)).toBe(2);
  await setting.server.restart();
  await until(async () => (await app.graphql('{ balances { totalCount } }')).errors === undefined);
});

test('whatever store is declared, a version stays where its rows are, and processes with either declaration answer from there', async () => {
  const app = await start({ projections: [balanceV1] });
  await active(app, 'balance@1');
  await open(app, 'a', 'b');
  await caughtUp(app, 'balance@1');
  const declaresStore = await start({ projections: [inStore(balanceV1)] });
  expect(said).toContainEqual(
    "balance@1 is declared in the store 'analytics', and its rows are in another one. They answer from there. Declare that store, or declare the next version in 'analytics'.",
  );
  expect(await rowsOf(declaresStore)).toBe(2);
  expect(await readRegistry(setting.store)).toEqual([]);
});

test('a version that was declared in another store while the first one was away answers from the first, and is retired in both', async () => {
  const app = await start({ projections: [inStore(balanceV1)] });
  await active(app, 'balance@1');
  await open(app, 'a');
  await caughtUp(app, 'balance@1');
  await app.stop();
  await setting.server.restart(); // batches commit without a flush: nothing would fold them again
  await setting.server.kill();
  const elsewhere = await start({ projections: [balanceV1], role: 'gateway' });
  await setting.server.restart();
  await until(async () => (await elsewhere.status())[0]?.store === 'analytics');
  // Until the gateway has read the other registry, it knows the version as new.
  await until(async () => (await elsewhere.graphql('{ balances { totalCount } }')).errors === undefined);
  expect(await rowsOf(elsewhere)).toBe(1);
  await elsewhere.lifecycle.retire('balance', 1, step);
  expect((await elsewhere.status()).map(({ state }) => state)).toEqual(['retired']);
  expect((await readRegistry(setting.store)).map(({ state }) => state)).toEqual(['retired']);
});
