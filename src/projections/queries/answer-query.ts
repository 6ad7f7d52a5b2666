import type { Projection, RowKey } from '../declaration/projection.ts';
import type { AggregateQuery, Measure, PageQuery, RowFilter } from './row-query.ts';

/** A whole answer that PostgreSQL makes: its shape, which stays the same for a document, and what is read for it this time. */
export interface AnswerQuery {
  /** Statements are kept by it: the same object for the same document. */
  readonly shape: AnswerShape;
  /** In the places that the shape names. */
  readonly reads: readonly AnswerRead[];
}

/** The answer's members by their keys, in order. */
export type Members<Part> = readonly (readonly [key: string, part: Part])[];

/** What is known beforehand, as JSON. */
export interface ConstantPart {
  readonly kind: 'constant';
  readonly json: string;
}

export interface AnswerShape {
  readonly roots: Members<RootPart>;
}

/** `read`: the place of what is read for it. */
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
      /** This row's columns, in the order of the other's key. */
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

/** A column, or a field of an object in one; of objects, and of lists of them, the members that are selected. */
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
  /** `upTo`: what is counted at most; null counts all. */
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

export type AnswerRead =
  /** One row by the columns that name it. */
  | {
      readonly kind: 'row';
      readonly projection: Projection;
      readonly columns: readonly string[];
      readonly by: readonly string[];
      readonly key: RowKey;
      readonly where: RowFilter | null;
    }
  /** The row that another one leads to, by its key. */
  | {
      readonly kind: 'one';
      readonly projection: Projection;
      readonly columns: readonly string[];
      readonly where: RowFilter | null;
    }
  /** `related`: the column that names another row; null where it is nobody's. */
  | {
      readonly kind: 'page';
      readonly projection: Projection;
      readonly query: PageQuery;
      readonly related: string | null;
      /** What cursors begin with: the order's name. */
      readonly order: string;
    }
  /** `by`: the names of its groupings. */
  | {
      readonly kind: 'aggregate';
      readonly projection: Projection;
      readonly query: AggregateQuery;
      readonly by: readonly string[];
    };
