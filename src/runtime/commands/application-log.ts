import type { Logger } from 'pino';
import { shareConnections } from '../../config/connections.ts';
import type { Config } from '../../config/define-config.ts';
import type { OnSlowEvent } from '../../events/event-pace.ts';
import { createTextCheck } from '../../projections/fold/unfitting-texts.ts';
import { createEventLog, type EventLog, type EventLogOptions } from '../../store/event-log.ts';
import { createDatabase, type Database } from '../../store/postgres/database.ts';
import { logLeftOut } from '../dead-letters/skips.ts';

export interface ApplicationLog {
  readonly log: EventLog;
  /** The pool that most appends use. */
  readonly db: Database;
  close(): Promise<void>;
}

export interface ApplicationLogOptions
  extends Pick<EventLogOptions, 'onAppended' | 'onSent' | 'onFolded' | 'unlessStalled'> {
  /** Freezes rows and events, so an impure `evolve` fails at its own line. */
  readonly freeze: boolean;
  /** Returns what receives the slow events of an inline version, or of upcasters. */
  readonly slowEvents?: (of: string) => OnSlowEvent;
  /** Receives the events that inline projections skip or keep as dead letters. */
  readonly logger?: Logger;
  /** Makes appends leave the versions whose tables are damaged. Called if a statement was refused because of a table. */
  readonly leaveDamaged?: () => Promise<void>;
  /** The application name of connections for appends that also fold. @default 'refold-append' */
  readonly applicationName?: string;
}

/** Opens the log of an application. Its inline projections commit together with the events appended to it. */
export function openApplicationLog(
  db: Database,
  config: Config,
  { freeze, logger, slowEvents, applicationName = 'refold-append', leaveDamaged, ...callbacks }: ApplicationLogOptions,
): ApplicationLog {
  const projections = config.projections.filter(({ mode }) => mode === 'inline');
  const { work, appends: folding } = shareConnections(config);
  const shared = {
    ...callbacks,
    ...(slowEvents ? { onSlowEvent: slowEvents('an upcaster') } : {}),
    checkTexts: createTextCheck(config.projections),
    lockTimeoutMs: config.database.appendLockTimeout,
    // Two are for appends that wait for nothing.
    maxWaiting: Math.max(1, Math.min(2, (projections.length > 0 ? Math.min(work, folding) : work) - 2)),
  };
  if (projections.length === 0) return { log: createEventLog(db, config.families, shared), db, close: async () => {} };
  const { readSchema, prepare, notifications: sessions, answerTimeout: answerTimeoutMs } = config.database;
  const slowIn = new Map(projections.map(({ id }) => [id, slowEvents?.(id)]));
  // These connections pipeline their statements, so nothing else may use them.
  const appends = createDatabase({
    url: db.url,
    maxConnections: folding,
    prepare,
    sessions,
    answerTimeoutMs,
    pipeline: sessions,
    byIndex: true,
    applicationName,
  });
  return {
    log: createEventLog(db, config.families, {
      ...shared,
      inline: {
        leaveDamaged,
        db: appends,
        readSchema,
        projections,
        freeze,
        onSlowEvent: ({ id }) => slowIn.get(id),
        ...(logger ? { onLeftOut: ({ id }, leftOut) => logLeftOut(logger, id, leftOut) } : {}),
      },
    }),
    db: appends,
    close: () => appends.close(),
  };
}
