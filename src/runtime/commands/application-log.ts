import type { Logger } from 'pino';
import { shareConnections } from '../../config/connections.ts';
import type { Config } from '../../config/define-config.ts';
import { createEventLog, type EventLog, type EventLogOptions } from '../../store/event-log.ts';
import { createDatabase, type Database } from '../../store/postgres/database.ts';
import { tellOfSkips } from '../dead-letters/skips.ts';

export interface ApplicationLog {
  readonly log: EventLog;
  /** The connections that most appends take. */
  readonly db: Database;
  close(): Promise<void>;
}

export interface ApplicationLogOptions extends Pick<EventLogOptions, 'onAppended' | 'onSent'> {
  /** Freezes rows and events, so that an impure `evolve` fails where it is. */
  readonly freeze: boolean;
  /** For events that inline projections skip. */
  readonly logger?: Logger;
  /** Of the connections for appends that fold. @default 'refold-append' */
  readonly applicationName?: string;
}

/** The log of an application, with the inline projections that commit with what is appended to it. */
export function openApplicationLog(
  db: Database,
  config: Config,
  { freeze, logger, applicationName = 'refold-append', onAppended, onSent }: ApplicationLogOptions,
): ApplicationLog {
  const projections = config.projections.filter(({ mode }) => mode === 'inline');
  const { appendLockTimeout: lockTimeoutMs } = config.database;
  const told = { ...(onAppended ? { onAppended } : {}), ...(onSent ? { onSent } : {}) };
  if (projections.length === 0)
    return { log: createEventLog(db, config.families, { lockTimeoutMs, ...told }), db, close: async () => {} };
  const { readSchema, prepare, notifications: sessions, answerTimeout: answerTimeoutMs } = config.database;
  // Statements of appends that fold are sent ahead of each other's answers, on connections that nothing else uses.
  const appends = createDatabase({
    url: db.url,
    maxConnections: shareConnections(config).appends,
    prepare,
    sessions,
    answerTimeoutMs,
    pipeline: sessions,
    byIndex: true,
    applicationName,
  });
  return {
    log: createEventLog(db, config.families, {
      lockTimeoutMs,
      ...told,
      inline: {
        db: appends,
        readSchema,
        projections,
        freeze,
        ...(logger ? { onSkipped: ({ id }, skipped) => tellOfSkips(logger, id, skipped) } : {}),
      },
    }),
    db: appends,
    close: () => appends.close(),
  };
}
