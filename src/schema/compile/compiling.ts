import type { FieldNode, GraphQLObjectType } from 'graphql';
import type { VersionMap } from '../../projections/declaration/version-map.ts';
import type { AnswerRead } from '../../projections/queries/answer-query.ts';

export type Variables = Readonly<Record<string, unknown>>;

/** What the fields of an operation are compiled with. */
export interface Compiling {
  readonly versions: VersionMap;
  /** Each read as it is for some variables; its place is its number. */
  readonly reads: ((variables: Variables) => AnswerRead)[];
  /** For each read of a page, the reads of the pages that it is within. */
  readonly within: Map<number, readonly number[]>;
  /** What is selected below these fields of an object type, by response key, in order. */
  selected(nodes: readonly FieldNode[], type: GraphQLObjectType): ReadonlyMap<string, readonly FieldNode[]>;
}

/** Why an operation, or an operation with these variables, has to be executed field by field. */
export class NotCompiled extends Error {
  override readonly name = 'NotCompiled';
}
