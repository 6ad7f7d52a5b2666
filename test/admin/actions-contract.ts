import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminRight, adminRights } from '../../src/config/admin-options.ts';
import type { Placement } from '../../src/config/read-store-options.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { type AdminUnderTest, startAdmin, tokens, usualTokens } from './admin-under-test.ts';
import { fillOperated, operated, operatedState } from './operated-application.ts';

let admin: AdminUnderTest;
/** That of the log, and that of the versions, which may be the same. */
let databases: { readonly log: Database; readonly versions: Database };
const close: (() => Promise<void>)[] = [];

/** A token that has this right only. */
const tokenOf = (right: AdminRight) => `token-for-the-right-${right}`;

/** A migrated database for the versions. */
export interface VersionsStore {
  readonly url: string;
  readonly placement?: Placement;
  drop(): Promise<void>;
}

/**
 * What holds for actions, whatever database has the versions. Called at the top of a test file.
 *
 * @param createStore @default the versions are with the log
 */
export function actionsContract(createStore?: () => Promise<VersionsStore>): void {
  beforeAll(async () => {
    const own = adminRights.map((right) => ({ name: `has ${right}`, token: tokenOf(right), rights: [right] }));
    const gateway = { port: 0, admin: { tokens: [...usualTokens, ...own] } };
    const apart = await createStore?.();
    const analytics = apart && { url: apart.url, ...(apart.placement ? { placement: apart.placement } : {}) };
    const stores = analytics ? { readStores: { analytics }, store: 'analytics' } : {};
    admin = await startAdmin({ ...operated, ...stores, gateway }, fillOperated);
    const log = createDatabase({ url: admin.database.url });
    databases = { log, versions: apart ? createDatabase({ url: apart.url }) : log };
    close.push(
      async () => apart?.drop(),
      () => admin.close(),
      () => databases.versions.close(),
      () => log.close(),
    );
  });
  afterAll(async () => {
    for (const one of close.splice(0).reverse()) await one();
  });
  everyRead();
  eachAction();
  refusals();
}

function everyRead(): void {
  test('every part of a version and every list is read', async () => {
    const { version, ...lists } = await admin.data(`{
      version(id: "strict@1") {
        id state health actions lag lagEvents { value } lagTrend { lag } deadLetters { value }
        table { rows bytes indexBytes indexes { name bytes scans } } snapshots { id } shadow { oneOf } pins { client }
        history { items { operation } } runs { items { kind events } }
      }
      overview { processes { name } lostOwners { name } leases { unit } stores { isAway connections { used } } }
      deadLetters(filter: { failed: true }) { items { of position blocked { value } } }
      deadLetterGroups(by: [ERROR, STACK, EVENT, STREAM, OF]) { items { count waiting } }
      discards(version: "strict@1") { items { position } }
      auditLog(filter: { actor: "worker", projection: "strict" }) { items { operation } }
      rows(version: "balance@2") { items { key } }
      rowHistory(projection: "strict", key: "a") { items { states { outcome } } }
      diff(older: "balance@1", newer: "balance@2") { rows }
    }`);
    expect(version).toMatchObject({
      id: 'strict@1',
      state: 'ACTIVE',
      lagEvents: { value: 0 },
      deadLetters: { value: 4 },
      table: { indexes: [{ name: 'strict_v1_pkey' }] },
      shadow: null,
      history: { items: expect.arrayContaining([{ operation: 'ready → active' }]) },
    });
    expect(lists).toMatchObject({
      overview: { processes: [{ name: 'admin-test' }], lostOwners: [], leases: [] },
      deadLetters: { items: [2, 5].map((at) => ({ of: 'strict@1', position: String(at), blocked: { value: 1 } })) },
      discards: { items: [] },
      auditLog: { items: expect.arrayContaining([{ operation: 'building → ready' }]) },
      rows: { items: [{ key: 'a' }, { key: 'b' }] },
      rowHistory: { items: [{ states: [{ outcome: 'LEFT_OUT' }] }, { states: [{ outcome: 'LEFT_OUT' }] }] },
      diff: { rows: '2' },
    });
    expect(lists.overview.stores.every(({ isAway }: { isAway: boolean }) => !isAway)).toBe(true);
  });
}

const stateNow = () => Promise.all([operatedState(databases.log), operatedState(databases.versions)]);

const preview = (action: object, token: string = tokens.all) =>
  admin
    .data(
      'query ($action: ActionInput!) { preview(action: $action) { action of right isAllowed summary details warnings refusal overcomeBy concerns { value isExact } digest } }',
      { action },
      token,
    )
    .then(({ preview: found }) => found);

const run = (action: object, digest: string | null, token: string, reason = 'as agreed') =>
  admin.post(
    'mutation ($action: ActionInput!, $digest: String!, $reason: String!) { run(action: $action, digest: $digest, reason: $reason) { action summary folded discarded left next version { id state } reactor { name state } } }',
    { action, digest: digest ?? '', reason },
    token,
  );

interface Case {
  readonly right: AdminRight;
  readonly action: object | (() => object | Promise<object>);
  /** What must be there before. */
  readonly before?: string;
  readonly outcome?: object;
}

const version = (name: string, more = {}) => ({ version: name, ...more });
const reactor = { reactor: 'mails' };
let snapshot = '';

// In this order: each leaves what the next one needs.
const cases: readonly Case[] = [
  { right: 'shadow', action: { startShadow: version('openings@2', { oneOf: 5 }) } },
  { right: 'shadow', action: { stopShadow: version('openings@2') } },
  { right: 'canary', action: { startCanary: version('openings@2', { percent: 10, header: 'X-Beta' }) } },
  { right: 'canary', action: { endCanary: { projection: 'openings' } } },
  {
    right: 'activate',
    action: { activate: version('openings@2') },
    outcome: { version: { id: 'openings@2', state: 'ACTIVE' } },
  },
  {
    right: 'rollback',
    action: { rollback: { projection: 'openings' } },
    outcome: { version: { id: 'openings@1', state: 'ACTIVE' } },
  },
  { right: 'pause', action: { pause: version('openings@1') } },
  { right: 'pause', action: { resume: version('openings@1') } },
  { right: 'rebuild', action: { rebuild: version('openings@1') } },
  {
    right: 'rebuild',
    before: `update refold.rebuilds set held_reason = 'new dead letters'`,
    action: { acceptRebuild: version('openings@1') },
  },
  { right: 'rebuild', action: { cancelRebuild: version('openings@1') } },
  { right: 'snapshot', action: { takeSnapshot: version('balance@1') } },
  {
    right: 'snapshot',
    action: async () => {
      snapshot = (await admin.data('{ version(id: "balance@1") { snapshots { id } } }')).version.snapshots[0].id;
      return { restoreSnapshot: version('balance@1', { snapshot }) };
    },
  },
  { right: 'snapshot', action: () => ({ dropSnapshot: version('balance@1', { snapshot }) }) },
  { right: 'rebuild', action: { rebuild: version('balance@1', { inPlace: true }) } },
  {
    right: 'retire',
    action: { retire: version('balance@1', { graceHours: 1 }) },
    outcome: { version: { state: 'RETIRED' } },
  },
  {
    right: 'retryDeadLetters',
    action: async () => {
      const { items } = (await admin.data('{ deadLetters(filter: { failed: true }) { items { id } } }')).deadLetters;
      return { retryDeadLetters: { ids: [items[0].id] } };
    },
    outcome: { folded: 0, left: 2, next: null },
  },
  {
    right: 'discardDeadLetters',
    action: { discardDeadLetters: { filter: { of: 'strict@1', error: undefined, failed: true } } },
    outcome: { folded: 2, discarded: 2, left: 0, next: null },
  },
  { right: 'discardDeadLetters', action: { recallDiscards: version('strict@1') } },
  { right: 'reactors', action: { pauseReactor: reactor }, outcome: { reactor: { state: 'paused' } } },
  { right: 'reactors', action: { resumeReactor: reactor } },
  { right: 'reactors', action: { rewindReactor: { ...reactor, position: '1' } } },
  { right: 'reactors', action: { skipReactor: { ...reactor, position: '5' } } },
  {
    right: 'reactors',
    before: `
      insert into refold.reactor_instances (reactor, position, event_id, event_type, stream_id, key, step, work, types, awaited_key, received)
      values ('mails', 4, gen_random_uuid(), 'Opened', 'b', 'b', 'answer', '', '{}', '', '{}')`,
    action: { cancelWaitingEvent: { ...reactor, position: '4' } },
  },
  {
    right: 'reactors',
    before: `insert into refold.reactor_versions (reactor, version, from_position) values ('mails', 1, 0), ('mails', 2, 5) on conflict do nothing`,
    action: { withdrawReactorVersion: { ...reactor, version: 2 } },
  },
  { right: 'reactors', action: { forgetReactor: reactor } },
];

function eachAction(): void {
  for (const { right, action: given, before, outcome } of cases) {
    const name = Object.keys(typeof given === 'function' ? {} : given)[0] ?? 'one of a found subject';
    test(`${name} (${right}) changes nothing as a preview, needs its right, and is recorded`, async () => {
      // Reactors are with the log, wherever the versions are.
      const place = right === 'reactors' ? 'log' : 'versions';
      if (before) await databases[place].query({ text: before });
      const action = typeof given === 'function' ? await given() : given;
      const unchanged = await stateNow();
      const seen = await preview(action, tokens.read);
      expect(seen).toMatchObject({ refusal: null, isAllowed: false });
      expect((await preview(action, tokenOf(right))).isAllowed).toBe(true);
      expect(seen.summary).not.toBe('');

      // Every other right together does not suffice.
      for (const token of [tokens.read, ...adminRights.filter((other) => other !== right).map(tokenOf)]) {
        const { data, errors } = await run(action, seen.digest, token);
        expect(data).toBeNull();
        expect(errors?.[0]?.extensions).toMatchObject({
          code: 'FORBIDDEN',
          right: right.replace(/[A-Z]/g, '_$&').toUpperCase(),
        });
      }
      const forged = await run(action, `${'x'.repeat(22)}.${Buffer.from('{}').toString('base64url')}`, tokenOf(right));
      expect(forged.errors?.[0]?.extensions.code).toBe('PREVIEW_OUTDATED');
      const silent = await run(action, seen.digest, tokenOf(right), ' ');
      expect(silent.errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
      expect(await stateNow()).toEqual(unchanged);

      const { data, errors } = await run(action, seen.digest, tokenOf(right));
      expect(errors).toBeUndefined();
      expect(data.run).toMatchObject(outcome ?? {});
      expect(await stateNow()).not.toEqual(unchanged);
      const { items } = (await admin.data('{ auditLog(first: 1) { items { actor reason } } }')).auditLog;
      expect(items[0].actor).toBe(`has ${right}`);
      expect(items[0].reason).toContain('as agreed');
      const [recorded] = await databases[place].query<{ actor: string }>({ text: lastRecord(place) });
      expect(recorded).toEqual({ actor: `has ${right}` });
    });
  }
}

const lastRecord = (place: 'log' | 'versions') =>
  `select actor from refold.${place === 'log' ? 'reactor_operations' : 'transitions'} order by id desc limit 1`;

function refusals(): void {
  test('an action that the state does not allow has no digest, and says what overcomes that', async () => {
    const refused = await preview({ retire: { version: 'balance@2' } });
    expect(refused).toMatchObject({ digest: null, overcomeBy: ['force'] });
    expect(refused.refusal).toContain('is the version that answers');
    expect((await preview({ retire: { version: 'balance@2', force: true } })).refusal).toBeNull();
    expect((await preview({ activate: { version: 'balance@2' } })).refusal).toContain('is active already');
    expect((await run({ activate: { version: 'balance@2' } }, 'x', tokens.all)).errors?.[0]?.extensions.code).toBe(
      'INVALID_TRANSITION',
    );
  });

  test('a digest counts only for the action that was previewed, and only while nothing has changed', async () => {
    const action = { pause: { version: 'openings@2' } };
    const { digest } = await preview(action);
    const other = await run({ pause: { version: 'openings@1' } }, digest, tokens.all);
    expect(other.errors?.[0]?.extensions.code).toBe('PREVIEW_OUTDATED');
    await admin.refold.lifecycle.startCanary(
      'openings',
      2,
      { percent: 1 },
      { actor: 'somebody else', reason: 'meanwhile' },
    );
    expect((await run(action, digest, tokens.all)).errors?.[0]?.extensions.code).toBe('PREVIEW_OUTDATED');
    expect((await run(action, (await preview(action)).digest, tokens.all)).errors).toBeUndefined();
  });
}
