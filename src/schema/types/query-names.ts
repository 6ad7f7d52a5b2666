import type { GraphqlNames, Projection } from '../../projections/projection/projection.ts';
import { pascalCase } from '../builder/type-names.ts';

/** The `Query` fields that read one projection, except the lookups by unique columns. */
export interface QueryNames extends Pick<GraphqlNames, 'single' | 'list'> {
  /** `cartSummariesAggregate` */
  readonly aggregate: string;
  /** `cartSummariesGrouped` */
  readonly grouped: string;
}

export function queryNames({ graphql: { single, list } }: Projection): QueryNames {
  return { single, list, aggregate: `${list}Aggregate`, grouped: `${list}Grouped` };
}

/** `parcelByTrackingId` for each unique column, with all columns of its index. The primary key has its own lookup. */
export function uniqueLookUps({
  columns,
  graphql,
}: Projection): readonly (readonly [columns: readonly string[], field: string])[] {
  return Object.entries(columns)
    .filter(([, { flags }]) => flags.unique && !flags.primaryKey)
    .map(
      ([
        name,
        {
          flags: { within },
        },
      ]) => [within === undefined ? [name] : [name, within], `${graphql.single}By${pascalCase(name)}`],
    );
}
