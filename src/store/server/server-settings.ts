import { onlyRow, type Queryable } from '../statements/statement.ts';

/** Settings that a start accepts, although they cost safety or speed. */
export interface ServerSettings {
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly synchronousCommit: string;
  readonly autovacuum: string;
  /** Of the role, outside of transactions. */
  readonly statementTimeout: string;
  readonly jit: string;
  /** Whether the role may see what other sessions do. */
  readonly seesSessions: boolean;
}

/**
 * What these settings cost, and how to change them.
 *
 * @param sessions whether each connection is a session, in which Refold sets some of them itself
 */
export function settingProblems(settings: ServerSettings, { sessions }: { readonly sessions: boolean }): string[] {
  const { fsync, fullPageWrites, synchronousCommit, autovacuum, statementTimeout, jit, seesSessions } = settings;
  return [
    ...(fsync === 'off'
      ? ['fsync is off: a crash of the machine can destroy the database. Set it to on, and restart the server.']
      : []),
    ...(fullPageWrites === 'off'
      ? [
          'full_page_writes is off: a crash of the machine can leave half-written pages, unless the file system prevents it. Set it to on.',
        ]
      : []),
    ...(synchronousCommit === 'off'
      ? [
          "synchronous_commit is off: a crash of the server loses the last commits that clients got a response for. Refold notices it (HISTORY_CHANGED), and can't bring them back. Run `alter role … set synchronous_commit = on`.",
        ]
      : []),
    ...(autovacuum === 'off'
      ? [
          'autovacuum is off: tables that are updated often grow without bound, and plans become wrong. Set it to on, and reload the server.',
        ]
      : []),
    ...(!sessions && statementTimeout !== '0'
      ? [
          `statement_timeout of the role is ${statementTimeout}: behind a pooler in transaction mode it ends statements that may take longer. Run \`alter role … set statement_timeout = 0\`.`,
        ]
      : []),
    ...(!sessions && jit === 'on'
      ? [
          'jit is on for the role: behind a pooler in transaction mode, compiling short statements takes longer than running them. Run `alter role … set jit = off`.',
        ]
      : []),
    ...(seesSessions
      ? []
      : [
          "the role may not see what other sessions do, so messages can't name the statement that holds something up. Run `grant pg_read_all_stats to` the role.",
        ]),
  ];
}

export async function readServerSettings(db: Queryable): Promise<ServerSettings> {
  const rows = await db.query<ServerSettings>({
    text: `
      select
        current_setting('fsync') as fsync,
        current_setting('full_page_writes') as "fullPageWrites",
        current_setting('synchronous_commit') as "synchronousCommit",
        current_setting('autovacuum') as autovacuum,
        current_setting('statement_timeout') as "statementTimeout",
        current_setting('jit') as jit,
        pg_has_role(current_user, 'pg_read_all_stats', 'usage') as "seesSessions"`,
  });
  return onlyRow(rows);
}

/** How far this machine's clock is from the server's, in seconds, and how exact that is. */
export interface ClockDifference {
  /** Above 0 if the server is ahead. */
  readonly seconds: number;
  readonly exactTo: number;
}

export async function readClockDifference(db: Queryable): Promise<ClockDifference> {
  await db.query({ text: 'select 1' }); // connects, which would count as the way of the answer
  const sent = Date.now();
  const [row] = await db.query<{ now: number }>({
    text: 'select extract(epoch from clock_timestamp())::float8 as now',
  });
  const received = Date.now();
  return { seconds: (row?.now ?? 0) - (sent + received) / 2000, exactTo: (received - sent) / 2000 };
}
