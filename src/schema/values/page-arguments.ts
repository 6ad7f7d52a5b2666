import type { PageQuery } from '../../projections/queries/row-query.ts';
import { badInput } from './canonical-input.ts';
import type { CursorCodec } from './cursor.ts';

export interface PageArguments {
  readonly first?: number | null | undefined;
  readonly last?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly before?: string | null | undefined;
}

/** The page size if the client gives none: about one screen of a list. */
export const defaultPageSize = 20;

/** Returns the requested page. @throws RefoldError `BAD_USER_INPUT` */
export function requestedPage(
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

/** Returns the length of a list that starts at the beginning. @throws RefoldError `BAD_USER_INPUT` */
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
