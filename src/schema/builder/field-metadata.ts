import type { GraphQLField } from 'graphql';
import type { Column } from '../../projections/columns/column.ts';
import type { Relation } from '../../projections/projection/relations.ts';
import type { ServedVersion } from '../../projections/projection/version-map.ts';
import type { Measure } from '../../projections/queries/row-query.ts';

/**
 * Metadata of a generated field, used to answer a whole operation with one statement. A field without metadata, such as one that an
 * application adds, runs its resolver.
 */
export type FieldMetadata =
  | { readonly kind: 'row'; readonly served: ServedVersion; readonly by: readonly string[] }
  | { readonly kind: 'list'; readonly served: ServedVersion; readonly maxPageSize: number }
  | { readonly kind: 'aggregate'; readonly served: ServedVersion }
  | { readonly kind: 'groups'; readonly served: ServedVersion; readonly maxPageSize: number }
  | { readonly kind: 'measure'; readonly of: Measure['kind'] }
  | { readonly kind: 'groupKey' }
  | { readonly kind: 'column'; readonly name: string; readonly column: Column }
  | { readonly kind: 'globalId' }
  | {
      readonly kind: 'relation';
      readonly relation: Relation;
      readonly target: ServedVersion;
      readonly maxPageSize: number;
    }
  | { readonly kind: ConnectionPart };

type ConnectionPart =
  | 'edges'
  | 'nodes'
  | 'pageInfo'
  | 'totalCount'
  | 'cursor'
  | 'node'
  | 'hasNextPage'
  | 'hasPreviousPage'
  | 'startCursor'
  | 'endCursor';

const key = 'refold';

/** Returns the metadata as part of a field's options. */
export function metadata(given: FieldMetadata): { readonly extensions: Readonly<Record<string, unknown>> } {
  return { extensions: { [key]: given } };
}

export function metadataOf({ extensions }: GraphQLField<unknown, unknown>): FieldMetadata | undefined {
  return extensions[key] as FieldMetadata | undefined; // only `metadata` sets it
}

/** Whether a plugin of Pothos has wrapped or replaced the field's resolver, so only the executor returns the field's value. */
export function isWrapped({ extensions }: GraphQLField<unknown, unknown>): boolean {
  const config = extensions.pothosConfig as { readonly resolve?: unknown } | undefined; // Pothos sets these for every field
  return extensions.pothosResolveWrapped === true || config?.resolve !== extensions.pothosOriginalResolve;
}
