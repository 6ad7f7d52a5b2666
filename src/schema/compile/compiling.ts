import type { FieldNode, GraphQLObjectType } from 'graphql';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import type { ResponseRead } from '../../projections/queries/response-query.ts';

export type Variables = Readonly<Record<string, unknown>>;

/** The state of compiling an operation. */
export interface Compiling {
  readonly versions: VersionMap;
  /** Each read as a function of the variables; its index is its number. */
  readonly reads: ((variables: Variables) => ResponseRead)[];
  /** For each read of a page, the reads of the pages that contain it. */
  readonly within: Map<number, readonly number[]>;
  /** The selection below these fields of an object type, by response key, in order. */
  selected(nodes: readonly FieldNode[], type: GraphQLObjectType): ReadonlyMap<string, readonly FieldNode[]>;
}

/** Why an operation, possibly only with these variables, has to run in the executor. */
export class NotCompiled extends Error {
  override readonly name = 'NotCompiled';
}
