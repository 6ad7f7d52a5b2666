import pg from 'pg';

/**
 * What Refold relies on in a session and a role or a database may have set otherwise. What is not here has its server's value: `work_mem`,
 * `search_path` (every name is qualified), `synchronous_commit`, `default_transaction_read_only` (a server that is out of space sets it).
 */
const reliedOn: Readonly<Record<string, string>> = {
  // A statement that waits for a lock must see what was committed meanwhile.
  default_transaction_isolation: 'read committed',
  // Batches, builds and rebuilds take as long as they take. Whoever wants a limit sets it.
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  // Statements are short and run often: to compile one takes longer than to run it, and every connection does it anew.
  jit: 'off',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
};

/** Of some versions and systems only. */
const whereKnown: readonly string[] = [
  // The server notices within seconds, in the middle of a statement, that this process is gone, and frees its locks. Not on every system.
  "set client_connection_check_interval = '5s'",
  // Between two statements the keepalive of TCP notices a machine that vanished: half an hour later by default, after 25 seconds like this.
  'set tcp_keepalives_idle = 10',
  'set tcp_keepalives_interval = 5',
  'set tcp_keepalives_count = 3',
  // Connections wait for work, and for notifications. From PostgreSQL 14.
  'set idle_session_timeout = 0',
  // From PostgreSQL 17.
  "select set_config('transaction_timeout', '0', false) where current_setting('server_version_num')::int >= 170000",
];

export interface SessionOptions {
  /** @default no limit */
  readonly statementTimeoutMs?: number | undefined;
  /** See {@link DatabaseOptions.byIndex}. @default false */
  readonly byIndex?: boolean | undefined;
}

/**
 * Sets what Refold relies on, in one message. By statements, since poolers in session mode refuse to be asked for most of it when a
 * connection opens.
 */
export async function settleSession(
  client: pg.ClientBase,
  { statementTimeoutMs = 0, byIndex = false }: SessionOptions = {},
): Promise<void> {
  const settings = { ...reliedOn, statement_timeout: String(Math.trunc(statementTimeoutMs)) };
  const fixed = Object.entries(byIndex ? { ...settings, enable_seqscan: 'off' } : settings).map(
    ([name, value]) => `set ${name} = '${value}'`,
  );
  try {
    await client.query([...fixed, ...whereKnown].join('; '));
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    // All or nothing: one of them is unknown here.
    await client.query(fixed.join('; '));
    for (const statement of whereKnown) await client.query(statement).catch(ignoreRefusal);
  }
}

/**
 * The same for one transaction, behind a pooler in transaction mode: what follows its `begin`. The isolation level is part of the `begin`; for
 * statements without one, the start-up check refuses another default.
 */
export function settleTransaction(statementTimeoutMs = 0): string {
  const settings = {
    jit: 'off',
    lock_timeout: '0',
    idle_in_transaction_session_timeout: '0',
    statement_timeout: String(Math.trunc(statementTimeoutMs)),
  };
  return Object.entries(settings)
    .map(([name, value]) => `; set local ${name} = '${value}'`)
    .join('');
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof pg.DatabaseError)) throw error;
}
