import pg from 'pg';

/** Settings on which results depend. */
const formats = {
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  // JSON and arrays contain bytes as this text, which is their canonical form in rows.
  bytea_output: 'hex',
} as const;

/** The catalog's names of types and columns, which are compared with those of declarations. */
const names = { quote_all_identifiers: 'off' } as const;

/** What every statement requires. If sessions can't be given these settings, the role must have them: the startup check refuses other values. */
export const settingsOfStatements: Readonly<Record<string, string>> = {
  // A statement that waited for a lock must see what was committed in the meantime.
  default_transaction_isolation: 'read committed',
  ...formats,
};

/**
 * The session settings that Refold requires, because a role or a database may have changed them. Settings that are not listed keep the
 * server's value: `work_mem`, `search_path` (every name is qualified), `synchronous_commit`, `default_transaction_read_only` (set by a
 * server that is out of space).
 */
const reliedOn: Readonly<Record<string, string>> = {
  ...settingsOfStatements,
  ...names,
  // Batches, builds and rebuilds may take any time. Code that needs a limit sets it.
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  // Statements are short and frequent. JIT compilation takes longer than running them, and happens in every connection.
  jit: 'off',
};

/** Settings that only some versions and systems have. */
const whereKnown: readonly string[] = [
  // The server detects within seconds, in the middle of a statement, that this process is gone, and frees its locks. Not on every system.
  "set client_connection_check_interval = '5s'",
  // Between two statements, TCP keepalive detects that a machine has disappeared: after half an hour by default, after 25 seconds with these.
  'set tcp_keepalives_idle = 10',
  'set tcp_keepalives_interval = 5',
  'set tcp_keepalives_count = 3',
  // Connections wait for work and for notifications. From PostgreSQL 14.
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
 * Applies the settings in one message. Uses statements, because poolers in session mode refuse most of these settings as startup
 * parameters.
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
    // The message was rolled back because one setting is unknown here.
    await client.query(fixed.join('; '));
    for (const statement of whereKnown) await client.query(statement).catch(ignoreRefusal);
  }
}

/**
 * The same for one transaction behind a pooler in transaction mode: the text after its `begin`. The isolation level is part of the `begin`.
 */
export function settleTransaction(statementTimeoutMs = 0): string {
  const settings = {
    ...formats,
    ...names,
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
