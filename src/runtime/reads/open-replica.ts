import type { Logger } from 'pino';
import { shareConnections } from '../../config/connections.ts';
import type { Config } from '../../config/define-config.ts';
import { createDatabase, type Database } from '../../store/postgres/database.ts';
import { createReplica, type Replica } from './replica.ts';

// Many times what a reachable server needs for the smallest response. Milliseconds.
const answerTime = 5000;

/** Starts to watch the configured replica. Returns undefined if none is configured. */
export function openReplica(config: Config, primary: Database, logger: Logger): Replica | undefined {
  const { database, gateway } = config;
  const { readUrl: url, maxReadLag: maxLag, prepare, notifications: sessions } = database;
  if (url === undefined) return undefined;
  // A replica that has vanished must not block its readers: the primary can serve them.
  const connection = { url, prepare, sessions, connectTimeoutMs: answerTime };
  return createReplica({
    primary,
    db: createDatabase({
      ...connection,
      maxConnections: shareConnections(config).reads,
      statementTimeoutMs: gateway.statementTimeout,
      answerTimeoutMs: gateway.statementTimeout + answerTime,
      shortStatements: true,
      applicationName: 'refold-replica-reads',
    }),
    watch: createDatabase({
      ...connection,
      maxConnections: 1,
      answerTimeoutMs: answerTime,
      shortStatements: true,
      applicationName: 'refold-replica-watch',
    }),
    maxLag,
    logger,
  });
}
