import type { Projection, RowKey } from '../projection/projection.ts';
import type { AggregateQuery, Measure, PageQuery, RowFilter } from './row-query.ts';

/** A whole response that PostgreSQL builds: its shape, which is the same for every run of a document, and the reads of this run. */
export interface ResponseQuery {
  /** The key of the statement cache: the same object for the same document. */
  readonly shape: ResponseShape;
  /** Ordered as the shape refers to them. */
  readonly reads: readonly ResponseRead[];
}

/** The members of a response object by key, in order. */
export type Members<Part> = readonly (readonly [key: string, part: Part])[];

/** JSON that is known in advance. */
export interface ConstantPart {
  readonly kind: 'constant';
  readonly json: string;
}

export interface ResponseShape {
  readonly roots: Members<RootPart>;
}

/** `read`: the index in `reads`. */
export type RootPart =
  | ConstantPart
  | { readonly kind: 'row'; readonly read: number; readonly row: Members<RowPart> }
  | { readonly kind: 'page'; readonly read: number; readonly page: Members<PagePart> }
  | { readonly kind: 'aggregate' | 'groups'; readonly read: number; readonly members: Members<AggregatePart> };

export type RowPart =
  | ConstantPart
  | ColumnPart
  | { readonly kind: 'globalId' }
  | {
      readonly kind: 'one';
      readonly read: number;
      /** This row's columns, in the order of the target's key. */
      readonly from: readonly string[];
      readonly row: Members<RowPart>;
    }
  | {
      readonly kind: 'many';
      readonly read: number;
      readonly from: string;
      readonly to: string;
      readonly page: Members<PagePart>;
    };

/** A column, or a field of an object in a column. For objects and lists of objects, `members` are the selected fields. */
export interface ColumnPart {
  readonly kind: 'column';
  readonly name: string;
  readonly members: Members<ConstantPart | ColumnPart> | null;
}

export type PagePart =
  | ConstantPart
  | { readonly kind: 'edges'; readonly members: Members<EdgePart> }
  | { readonly kind: 'nodes'; readonly row: Members<RowPart> }
  | { readonly kind: 'pageInfo'; readonly members: Members<PageInfoPart> }
  /** `upTo`: the maximum to count to; null counts all rows. */
  | { readonly kind: 'totalCount'; readonly upTo: number | null };

export type EdgePart =
  | ConstantPart
  | { readonly kind: 'cursor' }
  | { readonly kind: 'node'; readonly row: Members<RowPart> };

export type PageInfoPart =
  | ConstantPart
  | { readonly kind: 'hasNextPage' | 'hasPreviousPage' | 'startCursor' | 'endCursor' };

export type AggregatePart =
  | ConstantPart
  | { readonly kind: 'count' }
  | {
      readonly kind: 'measures';
      readonly of: Exclude<Measure['kind'], 'count'>;
      readonly members: Members<ConstantPart | { readonly kind: 'measure'; readonly column: string }>;
    }
  | {
      readonly kind: 'key';
      readonly members: Members<ConstantPart | { readonly kind: 'grouping'; readonly name: string }>;
    };

export type ResponseRead =
  /** One row, found by the columns that identify it. */
  | {
      readonly kind: 'row';
      readonly projection: Projection;
      readonly columns: readonly string[];
      readonly by: readonly string[];
      readonly key: RowKey;
      readonly where: RowFilter | null;
    }
  /** The row that another row refers to by key. */
  | {
      readonly kind: 'one';
      readonly projection: Projection;
      readonly columns: readonly string[];
      readonly where: RowFilter | null;
    }
  /** `related`: the column that refers to another row; null for a page that belongs to no row. */
  | {
      readonly kind: 'page';
      readonly projection: Projection;
      readonly query: PageQuery;
      readonly related: string | null;
      /** The prefix of cursors: the name of the order. */
      readonly order: string;
    }
  /** `by`: the names of the groupings. */
  | {
      readonly kind: 'aggregate';
      readonly projection: Projection;
      readonly query: AggregateQuery;
      readonly by: readonly string[];
    };
