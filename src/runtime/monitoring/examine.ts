import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import { checkCitus } from '../../store/citus/citus-check.ts';
import { readStalls } from '../../store/log/horizon.ts';
import { readLiveProcesses } from '../../store/ownership/live-processes.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ReadStore } from '../../store/read-store.ts';
import { readAllRegistries } from '../../store/registry/all-registries.ts';
import { uncheckedText } from '../../store/registry/inline-versions.ts';
import { checkServer, type ServerCheck, serverChecks } from '../../store/server/server-check.ts';
import {
  type ClockDifference,
  readClockDifference,
  readServerSettings,
  settingProblems,
} from '../../store/server/server-settings.ts';
import { checkSessions } from '../../store/server/session-check.ts';
import { checkStore } from '../../store/server/store-check.ts';
import { readViewsBehind } from '../../store/tables/views-behind.ts';
import { checkStoredDeclarations } from '../activation/check-declarations.ts';
import { describeLongStreams } from '../commands/long-streams.ts';
import { connectionLimitWarnings } from '../ownership/connection-limit.ts';
import { findUndeclaredVersions } from '../reactors/reactor-versions.ts';
import { viewBehindText } from '../versions/follow-views.ts';
import { stallText } from './stall-text.ts';

/** What an examination found about one subject. */
export interface Finding {
  readonly subject:
    | ServerCheck['subject']
    | 'sessions'
    | 'stores'
    | 'replicas'
    | 'settings'
    | 'connections'
    | 'clock'
    | 'horizon'
    | 'streams'
    | 'views'
    | 'declarations'
    | 'processes';
  /** `problem`: a start is refused, or something does not work. `note`: it works, and should be known. */
  readonly kind: 'ok' | 'note' | 'problem';
  /** What was found, and what to do. */
  readonly message: string;
}

/**
 * Examines a database as a start of the application does, and what a start does not look at: settings that cost safety, clocks, who holds the log
 * back, what nobody maintains. Changes nothing.
 */
export async function examine(
  db: Database,
  config: Config,
  apart: readonly Pick<ReadStore, 'name' | 'db'>[] = [],
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { subject, passed, check } of startChecks(config)) {
    const problem = await problemOf(() => check(db));
    findings.push({ subject, kind: problem ? 'problem' : 'ok', message: problem?.message ?? passed });
    // Nothing further can be learnt.
    if (problem?.code === 'DATABASE_UNAVAILABLE') return findings;
  }
  findings.push(...(await settings(db, config)), ...(await clock(db)));
  // The rest reads Refold's own tables.
  for (const store of apart) findings.push(await storeFinding(store, config));
  const isReadable = !findings.some(({ subject, kind }) => kind === 'problem' && needed.includes(subject));
  if (!isReadable) return findings;
  return [
    ...findings,
    ...(await connections(db, config)),
    ...(await horizon(db)),
    ...(await streams(db, config)),
    ...(await views([db, ...apart.map((store) => store.db)], config)),
    ...(await declarations(db, config)),
    ...(await processes(db)),
  ];
}

const needed: readonly Finding['subject'][] = ['server', 'privileges', 'migrations', 'stores'];

/** What a start checks of a read store apart from the log. */
async function storeFinding({ name, db }: Pick<ReadStore, 'name' | 'db'>, config: Config): Promise<Finding> {
  const { readSchema, notifications: sessions } = config.database;
  const problem = await problemOf(async () => {
    await checkServer(db, readSchema);
    await checkStore(db);
    await checkCitus(db);
    await checkSessions(db, { sessions });
  });
  const message = problem?.message ?? 'Its server is as suitable as that of the log, and it holds no events.';
  return { subject: 'stores', kind: problem ? 'problem' : 'ok', message: `Read store '${name}': ${message}` };
}

/** Compares the declarations with the database, as `refold check` does. */
export async function checkDeclarationsOf(
  db: Database,
  config: Config,
): Promise<{ readonly kind: 'problem' | 'note'; readonly message: string }[]> {
  const reactors = await findUndeclaredVersions(db, config.reactors);
  return [
    ...(await checkStoredDeclarations(db, config)),
    ...reactors.map(({ isMissed, message }) => ({
      kind: isMissed ? ('problem' as const) : ('note' as const),
      message,
    })),
  ];
}

interface StartCheck {
  readonly subject: Finding['subject'];
  readonly passed: string;
  check(db: Database): Promise<void>;
}

/** What every start checks. The sessions come second, because all others rely on the connection. */
function startChecks({ database: { readSchema, notifications: sessions } }: Config): readonly StartCheck[] {
  const [first, ...others] = serverChecks(readSchema);
  const ofSessions: StartCheck = {
    subject: 'sessions',
    passed: sessions
      ? 'A lock of one connection is seen by another, and each connection is a session of its own.'
      : 'A lock of one connection is seen by another. Connections need not be sessions (database.notifications is false).',
    check: (db) => checkSessions(db, { sessions }),
  };
  return [...(first ? [first] : []), ofSessions, ...others];
}

async function settings(db: Database, { database }: Config): Promise<Finding[]> {
  const problems = settingProblems(await readServerSettings(db), { sessions: database.notifications });
  return found('settings', 'note', problems, 'No setting of the server costs safety.');
}

// Below a second, a clock serves every purpose that Refold has for it.
const clockSeconds = 1;

async function clock(db: Database): Promise<Finding[]> {
  const problem = clockProblem(await readClockDifference(db));
  return found(
    'clock',
    'note',
    problem === undefined ? [] : [problem],
    'The clocks of this machine and of the server agree.',
  );
}

export function clockProblem({ seconds, exactTo }: ClockDifference): string | undefined {
  if (Math.abs(seconds) - exactTo <= clockSeconds) return undefined;
  const where = seconds > 0 ? 'behind' : 'ahead of';
  return `The clock of this machine is ${Math.abs(seconds).toFixed(1)} s ${where} that of the server: tokens expire too ${seconds > 0 ? 'late' : 'early'} here, and times in logs do not match those of events. Synchronize both by NTP.`;
}

async function connections(db: Database, { database }: Config): Promise<Finding[]> {
  const warnings = await connectionLimitWarnings(db, database);
  return found('connections', 'note', warnings, 'The server admits the connections of all processes and one more.');
}

async function horizon(db: Database): Promise<Finding[]> {
  const stalls = (await readStalls(db)).filter(({ seconds }) => seconds > longSeconds);
  return found('horizon', 'problem', stalls.map(stallText), 'No session holds the log back.');
}

// An append takes milliseconds. Read models stand still for this long before somebody should look.
const longSeconds = 5;

async function streams(db: Database, { commands }: Config): Promise<Finding[]> {
  const long = await describeLongStreams(db, commands);
  return found('streams', 'note', long, 'No command reads a long stream from its first event.');
}

async function views(stores: readonly Database[], { database: { readSchema } }: Config): Promise<Finding[]> {
  const behind = (await Promise.all(stores.map((store) => readViewsBehind(store, readSchema)))).flat();
  const texts = behind.map((view) => viewBehindText(readSchema, view));
  return found('views', 'note', texts, 'Every stable view shows the version that answers.');
}

async function declarations(db: Database, config: Config): Promise<Finding[]> {
  const different = await checkDeclarationsOf(db, config);
  if (different.length === 0)
    return found('declarations', 'note', [], 'The database has what the application declares.');
  return different.map(({ kind, message }) => ({ subject: 'declarations', kind, message }));
}

async function processes(db: Database): Promise<Finding[]> {
  const live = await readLiveProcesses(db);
  const maintained = (await readAllRegistries(db)).filter(({ state }) => state !== 'retired');
  const unchecked = maintained.flatMap(uncheckedText);
  const stopped = maintained.flatMap(({ name, version, status, error }) =>
    status === 'stopped' ? [`${name}@${version} has stopped: ${error?.message ?? 'see refold status'}`] : [],
  );
  const left = maintained.flatMap(({ name, version, status, inline, paused }) =>
    status === 'idle' && inline !== 'live' && paused === null ? [`${name}@${version}`] : [],
  );
  const notes = maintained.flatMap(({ name, version, paused }) =>
    paused
      ? [
          `${name}@${version} is paused since ${paused.since} by ${paused.by} (${paused.reason}). 'refold resume ${name}@${version}' resumes it.`,
        ]
      : [],
  );
  if (left.length > 0)
    notes.push(
      `No process maintains ${left.join(', ')}. Start a worker that declares them, or retire what is not needed.`,
    );
  const sound = `${live.length} ${live.length === 1 ? 'process runs' : 'processes run'}, and every version is maintained.`;
  if (unchecked.length + stopped.length + notes.length === 0) return found('processes', 'note', [], sound);
  return [
    ...[...unchecked, ...stopped].map((message): Finding => ({ subject: 'processes', kind: 'problem', message })),
    ...notes.map((message): Finding => ({ subject: 'processes', kind: 'note', message })),
  ];
}

function found(
  subject: Finding['subject'],
  kind: 'note' | 'problem',
  messages: readonly string[],
  passed: string,
): Finding[] {
  if (messages.length === 0) return [{ subject, kind: 'ok', message: passed }];
  return messages.map((message) => ({ subject, kind, message }));
}

async function problemOf(check: () => Promise<void>): Promise<RefoldError | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    if (error instanceof RefoldError) return error;
    throw error;
  }
}
