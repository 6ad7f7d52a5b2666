import type { GraphqlNames, Projection } from '../projections/projection.ts';

/** The fields of `Query` that read one projection. */
export interface QueryNames extends Pick<GraphqlNames, 'single' | 'list'> {
  /** `cartSummariesAggregate` */
  readonly aggregate: string;
  /** `cartSummariesGrouped` */
  readonly grouped: string;
}

export function queryNames({ graphql: { single, list } }: Projection): QueryNames {
  return { single, list, aggregate: `${list}Aggregate`, grouped: `${list}Grouped` };
}
