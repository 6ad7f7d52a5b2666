import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';
import { RefoldError } from './errors.ts';
import { hiddenText } from './projections/declaration/hidden-values.ts';
import type { Projection } from './projections/projection/projection.ts';
import { traceFields } from './tracing.ts';

export type LogFormat = 'json' | 'text';

/** How a program logs. */
export interface LogOptions {
  /** The lowest level that is logged. @default 'info' */
  readonly level?: string;
  /** Added to each line. @default none */
  readonly name?: string;
  /** Values of these projections' personal columns never appear in a line. @default none */
  readonly projections?: readonly Pick<Projection, 'hidden' | 'sqlNames'>[];
  /** `text` for people, `json` for machines: one object a line. @default 'json' */
  readonly format?: LogFormat;
  /** Where JSON is written. @default standard output */
  readonly destination?: DestinationStream;
}

/**
 * Creates a logger for `createRefold`, as that of `refold start`: level names, and lines without passwords, tokens and values of personal columns.
 *
 * @example
 * await createRefold(config, { logger: createLogger({ level: 'warn', projections: config.projections }) });
 */
export function createLogger({ level = 'info', name, projections = [], format, destination }: LogOptions = {}): Logger {
  const options: LoggerOptions = {
    level,
    ...(name === undefined ? {} : { name }),
    formatters: { level: (label) => ({ level: label }) },
    mixin: () => traceFields() ?? {},
    hooks: { streamWrite: createRedaction(projections) },
  };
  if (format !== 'text') return destination ? pino(options, destination) : pino(options);
  return pino({
    ...options,
    transport: {
      target: 'pino-pretty',
      options: { ignore: 'pid,hostname,projection,checkpoint,epoch,state', translateTime: 'HH:MM:ss' },
    },
  });
}

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** What `LOG_LEVEL` and `LOG_FORMAT` set. Without them, a terminal gets text. @throws RefoldError `INVALID_CONFIG` */
export function logOptions(
  env: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): Required<Pick<LogOptions, 'level' | 'format'>> {
  const level = env.LOG_LEVEL || 'info';
  if (!levels.includes(level))
    throw new RefoldError('INVALID_CONFIG', `LOG_LEVEL is one of ${levels.join(', ')}; found '${level}'.`);
  const format = env.LOG_FORMAT || (isTerminal ? 'text' : 'json');
  if (format !== 'json' && format !== 'text')
    throw new RefoldError('INVALID_CONFIG', `LOG_FORMAT is json or text; found '${format}'.`);
  return { level, format };
}

const hiddenSecret = '[redacted]';

/** Returns a function that removes secrets and personal values from a line of JSON, wherever in the line they are: messages, stacks, fields. */
export function createRedaction(
  projections: readonly Pick<Projection, 'hidden' | 'sqlNames'>[],
): (line: string) => string {
  const hidden = new Set(
    projections.flatMap((one) => [...one.hidden].flatMap((name) => [name, one.sqlNames[name] ?? name])),
  );
  const members = [...hidden].map((name) => `"${name}":`);
  return (line) => {
    const plain = withoutSecrets(line);
    return members.some((member) => plain.includes(member)) ? withoutMembers(plain, hidden) : plain;
  };
}

const secrets: readonly (readonly [RegExp, string])[] = [
  // The password of a URL, such as that of a database.
  [/\b([a-z][a-z0-9+.-]*:\/\/[^\s:@/"\\]*):[^\s@/"\\]+@/gi, `$1:${hiddenSecret}@`],
  [/\b((?:ssl)?password)=[^\s&"'\\]+/gi, `$1=${hiddenSecret}`],
  // Credentials of a request, in a text or as a header.
  [/\b(bearer)\s+(?=[^\s"\\]*[\d._~+/=-])[\w.~+/=-]{8,}/gi, `$1 ${hiddenSecret}`],
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, hiddenSecret],
  [
    /"((?:proxy-)?authorization|(?:set-)?cookie|[\w-]*(?:password|secret|token|api[-_]?key))":\s*(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\])/gi,
    `"$1":"${hiddenSecret}"`,
  ],
  // What PostgreSQL adds to an error about a row: its values.
  [
    /(\bKey \((?:[^()]|\([^()]*\))*\)=)\((?:[^"\\]|\\.)*?\)(?= (?:already exists|is not present|is still referenced|conflicts with))/g,
    `$1${hiddenText}`,
  ],
  [/(Failing row contains )\((?:[^"\\]|\\.)*?\)(?=\.["\\:])/g, `$1${hiddenText}`],
  [/(\bCOPY \w+, line \d+(?:, column \w+)?: )\\"(?:[^"\\]|\\[^"]|\\")*?\\"(?=")/g, `$1${hiddenText}`],
];

function withoutSecrets(line: string): string {
  return secrets.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), line);
}

// A line's own members, which a personal column may have the names of.
const ownMembers: ReadonlySet<string> = new Set(['level', 'time', 'pid', 'hostname', 'name', 'msg']);

// What says which error it is.
const ownOfErrors: ReadonlySet<string> = new Set(['type', 'name', 'code']);

/** Whether it is an error, as pino writes it. */
function isError(written: object): boolean {
  return 'type' in written && 'message' in written && 'stack' in written;
}

function withoutMembers(line: string, hidden: ReadonlySet<string>): string {
  const given: Record<string, unknown> = JSON.parse(line); // pino writes an object
  const hide = (key: string, value: unknown) => (hidden.has(key) && value !== null ? hiddenText : value);
  const hideWithin = function (this: object, key: string, value: unknown) {
    return isError(this) && ownOfErrors.has(key) ? value : hide(key, value);
  };
  const members = Object.entries(given).map(([key, value]) => {
    const within = typeof value === 'object' && value !== null ? JSON.parse(JSON.stringify(value), hideWithin) : value;
    return [key, ownMembers.has(key) ? within : hide(key, within)];
  });
  return `${JSON.stringify(Object.fromEntries(members))}\n`;
}
