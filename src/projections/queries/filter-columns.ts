import type { Projection } from '../projection/projection.ts';
import { type RelatedFilter, type RowFilter, relatedTarget } from './row-query.ts';

/** The columns of its own table that a filter reads. */
export function filterColumns(filter: RowFilter | null): string[] {
  if (filter === null) return [];
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.flatMap(filterColumns);
    case 'not':
      return filterColumns(filter.filter);
    case 'related':
      return filter.columns.map(([own]) => own);
    default:
      return [filter.column];
  }
}

/** The filters on other tables inside a filter, at any depth of and, or and not. Excludes filters nested in them. */
export function relatedFilters(filter: RowFilter | null): RelatedFilter[] {
  if (filter === null) return [];
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.flatMap(relatedFilters);
    case 'not':
      return relatedFilters(filter.filter);
    case 'related':
      return [filter];
    default:
      return [];
  }
}

/** The filter with other tables in place of those that it uses besides its own. */
export function retargeted(filter: RowFilter, tableOf: (target: Projection) => Projection): RowFilter {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return { ...filter, filters: filter.filters.map((part) => retargeted(part, tableOf)) };
    case 'not':
      return { ...filter, filter: retargeted(filter.filter, tableOf) };
    case 'related': {
      const inside = filter.filter && retargeted(filter.filter, tableOf);
      return { ...filter, target: relatedTarget(tableOf(filter.target.projection)), filter: inside };
    }
    default:
      return filter;
  }
}
