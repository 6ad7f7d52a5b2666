import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { migrate } from '../../src/store/server/migrate.ts';
import { callsPerSecond } from '../calls-per-second.ts';
import { cart, itemAdded } from '../carts.ts';
import { check } from '../check.ts';
import { openPool } from '../open-pool.ts';
import { createOwnStreams } from '../own-streams.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const callers = 128;

/** What bounds the log of one server: commits that notify, which PostgreSQL makes one after the other; events of a commit; WAL of an event. */
export const commits: Scenario = {
  name: 'commits',
  fullOnly: true,
  async run({ server, quick, rounds }) {
    const milliseconds = quick ? 1000 : 5000;
    const plainUrl = await server.createDatabase('bench_commits');
    const pool = openPool(plainUrl, 32);
    await pool.query('create table written (id bigint generated always as identity primary key, text text)');
    const insert = (also: string) => () =>
      pool.query(`with written as (insert into written (text) values ('text')) select ${also}`);
    const commitsOf = (also: string) => async () => {
      await server.settle();
      return callsPerSecond(32, milliseconds, insert(also));
    };
    const plain = await inTurn(rounds, { refold: commitsOf(`pg_notify('written', 'text')`), limit: commitsOf('1') });

    const url = await server.createDatabase('bench_commits_log');
    await migrate(url);
    const db = createDatabase({ url });
    const log = createEventLog(db, [cart]);
    const streams = createOwnStreams();
    const walOf = async () => {
      const [row] = await db.query<{ n: string }>({ text: `select (pg_current_wal_lsn() - '0/0'::pg_lsn)::text as n` });
      return Number(row?.n);
    };
    const events: number[] = [];
    const joined: number[] = [];
    const wal: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await server.settle();
      const before = { calls: streams.calls, statements: db.counts.statements, wal: await walOf() };
      const append = (caller: number) =>
        log.append({ family: cart, streamId: streams.next(caller), events: [itemAdded] });
      events.push(await callsPerSecond(callers, milliseconds, append));
      const appended = streams.calls - before.calls;
      joined.push(appended / (db.counts.statements - before.statements - 1));
      wal.push(((await walOf()) - before.wal) / appended);
    }
    const [logged] = await db.query<{ n: number }>({ text: 'select count(*)::int as n from refold.events' });
    check(logged?.n === streams.calls, () => `${logged?.n} events of ${streams.calls} appends`);
    await Promise.all([db.close(), pool.end()]);
    const name = 'commits';
    return [
      {
        scenario: `${name}-notify`,
        unit: 'commits/s',
        better: 'more',
        refold: plain.refold ?? [],
        limit: plain.limit,
        limitName: 'commits without NOTIFY',
        target: {},
      },
      { scenario: `${name}-of-the-log`, unit: 'events/s', better: 'more', refold: events, target: {} },
      { scenario: `${name}-joined`, unit: 'events of a commit', better: 'more', refold: joined, target: {} },
      { scenario: `${name}-event-wal`, unit: 'bytes of an event', better: 'less', refold: wal, target: {} },
    ];
  },
};
