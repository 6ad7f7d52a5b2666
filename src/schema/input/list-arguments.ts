import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import type { PageQuery } from '../../projections/queries/row-query.ts';
import type { Builder } from '../builder/builder.ts';
import type { Connection } from '../types/connection.ts';
import type { WhereInput } from '../types/filter-types.ts';
import { type OrderInput, rowOrder } from '../types/order.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { cursorCodec } from '../values/cursor.ts';
import { defaultPageSize, type PageArguments, requestedPage } from '../values/page-arguments.ts';
import { rowFilter } from './where.ts';

/** The arguments of a field that returns a connection of a projection's rows. */
export function listArguments(
  builder: Builder,
  { where, orderBy }: Pick<ProjectionTypes, 'where' | 'orderBy'>,
  maxPageSize: number,
) {
  return builder.args((arg) => ({
    where: arg.field({
      type: where,
      required: false,
      description: 'Only rows that match this filter. Default: all rows.',
    }),
    orderBy: arg.field({
      type: [orderBy],
      required: false,
      description: 'The order of the rows. Rows with equal values are ordered by their key.',
    }),
    first: arg.int({
      required: false,
      description: `The number of rows from the start, or after \`after\`. Default: ${Math.min(defaultPageSize, maxPageSize)}. Maximum: ${maxPageSize}.`,
    }),
    after: arg.string({ required: false, description: 'A cursor. The page starts after it.' }),
    last: arg.int({ required: false, description: 'The number of rows from the end, or before `before`.' }),
    before: arg.string({ required: false, description: 'A cursor. The page ends before it.' }),
  }));
}

export interface ListArguments extends PageArguments {
  readonly where?: WhereInput | null | undefined;
  readonly orderBy?: readonly OrderInput[] | null | undefined;
}

/** Returns the requested page and the encoder of its cursors. @throws RefoldError `BAD_USER_INPUT` */
export function listQuery(
  projection: Projection,
  args: ListArguments,
  columns: readonly string[],
  maxPageSize: number,
  versions: VersionMap,
): { readonly query: PageQuery; readonly cursorOf: Connection['cursorOf'] } {
  const orderBy = rowOrder(args.orderBy);
  const cursors = cursorCodec(projection, orderBy);
  const where = rowFilter(projection, args.where, versions);
  return { query: { where, orderBy, columns, ...requestedPage(args, cursors, maxPageSize) }, cursorOf: cursors.encode };
}
