import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseHostList } from '../../../src/config/host-list.ts';
import { createAdvisoryOwnership } from '../../../src/store/ownership/advisory-ownership.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { databaseAddress } from '../../../src/store/postgres/database-errors.ts';
import { createNotifications } from '../../../src/store/postgres/notifications.ts';
import { startOwnServer } from '../../support/own-server.ts';
import type { PostgresCluster, PostgresStandby } from '../../support/postgres-cluster.ts';
import { until } from '../../support/until.ts';
import { patiently } from '../ownership/patient-owner.ts';

describe('a connection URL', () => {
  test.for([
    [
      'postgres://me:s%2C@a:1,b/db',
      [
        ['a', 1],
        ['b', 5432],
      ],
      'any',
      'postgres://me:s%2C@a:1/db',
    ],
    [
      'postgres://[::1]:1,[fe80::1]/db',
      [
        ['::1', 1],
        ['fe80::1', 5432],
      ],
      'any',
      'postgres://[::1]:1/db',
    ],
    [
      'postgresql://a,b?target_session_attrs=read-write',
      [
        ['a', 5432],
        ['b', 5432],
      ],
      'read-write',
      'postgresql://a?target_session_attrs=read-write',
    ],
    ['postgres:///db?host=/run/pg', [['', 5432]], 'any', 'postgres:///db?host=/run/pg'],
  ] as const)('%s', ([url, hosts, target, first]) => {
    const list = { hosts: hosts.map(([host, port]) => ({ host, port })), target, url: first };
    expect(parseHostList(url)).toEqual(list);
  });

  test.for([
    'postgres://a,/db',
    'postgres://a:x,b/db',
    'postgres://a,b:70000/db',
    'a,b',
    'postgres://a/db?target_session_attrs=best',
  ])('%s is not a list of hosts', (url) => expect(parseHostList(url)).toBeUndefined());

  test('is named in messages with all of its hosts', () => {
    expect(databaseAddress('postgres://me:secret@a:1,b/db?sslmode=require')).toBe('a:1,b:5432/db');
  });
});

describe('a primary and its standby', () => {
  let cluster: PostgresCluster;
  let standby: PostgresStandby;
  beforeAll(async () => {
    cluster = await startOwnServer();
    standby = await cluster.startStandby(cluster.url);
  });
  afterAll(async () => {
    await standby?.stop();
    await cluster?.stop();
  });

  const port = (url: string) => new URL(url).port;
  /** Nothing listens on the first host. */
  const both = (target: string, [first, second]: readonly string[] = [standby.url, cluster.url]) =>
    `postgresql://postgres@127.0.0.1:1,127.0.0.1:${port(first ?? '')},127.0.0.1:${port(second ?? '')}/refold?target_session_attrs=${target}`;
  const portOf = async (db: Database) =>
    (await db.query<{ port: string }>({ text: `select current_setting('port') as port` }))[0]?.port;

  test.for(['any', 'read-write', 'primary', 'read-only', 'standby', 'prefer-standby'])('%s', async (target) => {
    const expected = target === 'read-write' || target === 'primary' ? cluster : standby;
    // 'any' takes the first host that responds.
    for (const order of target === 'any'
      ? [[standby.url, cluster.url]]
      : [
          [standby.url, cluster.url],
          [cluster.url, standby.url],
        ]) {
      const db = createDatabase({ url: both(target, order) });
      expect(await portOf(db)).toBe(port(expected.url));
      await db.close();
    }
  });

  test('nothing is executed if no host fits, and the error names all hosts', async () => {
    const url = `postgresql://postgres@127.0.0.1:1,127.0.0.1:${port(cluster.url)}/refold?target_session_attrs=standby`;
    const db = createDatabase({ url });
    await expect(db.query({ text: 'select 1' })).rejects.toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      message: expect.stringMatching(/127\.0\.0\.1:1: .*ECONNREFUSED.*: it is a primary/),
      fields: { sent: false },
    });
    await db.close();
  });

  test('the pool, the listener and the owner follow a promotion automatically', async () => {
    const url = both('read-write', [cluster.url, standby.url]);
    const db = createDatabase({ url });
    const notifications = createNotifications({ url, minBackoffMs: 1 });
    const ownership = createAdvisoryOwnership({ url });
    const heard: (string | undefined)[] = [];
    notifications.on('promotion', (payload) => heard.push(payload));
    await until(() => heard.length === 1);
    const lock = await patiently(ownership, 'promoted');
    expect(await portOf(db)).toBe(port(cluster.url));
    await cluster.kill();
    const promoting = createDatabase({ url: standby.url });
    await promoting.query({ text: 'select pg_promote()' });
    await promoting.close();
    await until(async () => (await portOf(db).catch(() => undefined)) === port(standby.url));
    await until(() => lock?.lost.aborted);
    expect(await patiently(ownership, 'promoted')).not.toBeNull();
    await until(() => heard.length >= 2);
    await db.query({ text: `select pg_notify('promotion', 'heard')` });
    await until(() => heard.includes('heard'));
    await ownership.close();
    await notifications.close();
    await db.close();
  });
});
