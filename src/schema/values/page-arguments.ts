import type { PageQuery } from '../../projections/queries/row-query.ts';
import { badInput } from './canonical-input.ts';
import type { CursorCodec } from './cursor.ts';

export interface PageArguments {
  readonly first?: number | null | undefined;
  readonly last?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly before?: string | null | undefined;
}

/** Rows in a page where the client names no number: a screen of a list. */
export const defaultPageSize = 20;

/** Which page the arguments name. @throws RefoldError `BAD_USER_INPUT` */
export function pageOf(
  args: PageArguments,
  cursors: Pick<CursorCodec, 'decode'>,
  maxPageSize: number,
): Pick<PageQuery, 'direction' | 'limit' | 'after' | 'before'> {
  const { first, last, after, before } = args;
  if (isGiven(first) && isGiven(last)) throw badInput("Give 'first' or 'last', not both.");
  return {
    direction: isGiven(last) ? 'backward' : 'forward',
    limit: isGiven(last) ? pageSize(last, 'last', maxPageSize) : firstOf(first, maxPageSize),
    after: isGiven(after) ? cursors.decode(after, 'after') : null,
    before: isGiven(before) ? cursors.decode(before, 'before') : null,
  };
}

/** The size of a list that starts at its beginning. @throws RefoldError `BAD_USER_INPUT` */
export function firstOf(first: number | null | undefined, maxPageSize: number): number {
  return isGiven(first) ? pageSize(first, 'first', maxPageSize) : Math.min(defaultPageSize, maxPageSize);
}

function pageSize(size: number, argument: string, maxPageSize: number): number {
  if (size < 0) throw badInput(`'${argument}' is ${size}; it can't be negative.`);
  if (size > maxPageSize)
    throw badInput(`'${argument}' is ${size}; a page has at most ${maxPageSize} rows. Ask for the next page.`);
  return size;
}

function isGiven<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined;
}
