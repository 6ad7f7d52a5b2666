import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { reasonOf } from '../../thrown.ts';

/** The arguments that choose events. */
export const eventArguments = {
  stream: {
    type: 'positional',
    description: 'One stream: its family and its id, such as shopping_cart/c1. Default: all',
    required: false,
  },
  type: {
    type: 'string',
    description: 'Types, separated by commas: Opened, account.Opened or account.*',
    alias: 't',
    valueHint: 'TYPES',
  },
  correlation: { type: 'string', description: 'Events with this correlation id', valueHint: 'ID' },
  payload: { type: 'boolean', description: 'Show payloads, too. They may hold personal data', alias: 'p' },
} as const;

/** The arguments that limit where in the log to look. */
export const rangeArguments = {
  from: { type: 'string', description: 'Start at this position of the log', valueHint: 'POSITION' },
  to: { type: 'string', description: 'End with this position of the log', valueHint: 'POSITION' },
  since: {
    type: 'string',
    description: 'Recorded at this time or later: 2026-01-31T12:00:00Z, or an age such as 15m, 2h, 3d',
    valueHint: 'TIME',
  },
  until: { type: 'string', description: 'Recorded before this time', valueHint: 'TIME' },
} as const;

interface RangeArguments {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/** Where to look. @throws RefoldError `INVALID_CONFIG` */
export function rangeOf({ from, to, since, until }: RangeArguments) {
  return {
    from: from === undefined ? undefined : positionOf('--from', from).toString(),
    to: to === undefined ? undefined : positionOf('--to', to).toString(),
    since: since === undefined ? undefined : timeOf('--since', since),
    until: until === undefined ? undefined : timeOf('--until', until),
  };
}

/** @throws RefoldError `INVALID_CONFIG` */
export function positionOf(argument: string, text: string): GlobalPosition {
  try {
    return globalPosition(text);
  } catch (error) {
    throw new RefoldError('INVALID_CONFIG', `${argument}: ${reasonOf(error)}`);
  }
}

/** @throws RefoldError `INVALID_CONFIG` */
export function limitOf(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 100_000) return limit;
  throw new RefoldError('INVALID_CONFIG', `--limit is a whole number from 1 to 100000, found '${text}'.`);
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Without a zone, a time would depend on the machine. */
function timeOf(argument: string, text: string): string {
  const [, number, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const seconds = unit === undefined ? undefined : unitSeconds[unit];
  if (seconds !== undefined) return new Date(Date.now() - Number(number) * seconds * 1000).toISOString();
  const isWhole = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  if (isWhole && !Number.isNaN(Date.parse(text))) return text.length === 10 ? `${text}T00:00:00Z` : text;
  throw new RefoldError(
    'INVALID_CONFIG',
    `${argument} is a time with its zone, such as 2026-01-31T12:00:00Z, a day (in UTC), or an age such as 15m, 2h or 3d; found '${text}'.`,
  );
}
