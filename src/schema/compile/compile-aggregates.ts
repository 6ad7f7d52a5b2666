import type { ServedVersion } from '../../projections/projection/version-map.ts';
import type { AggregatePart, Members, ResponseRead, RootPart } from '../../projections/queries/response-query.ts';
import type { Measure } from '../../projections/queries/row-query.ts';
import { type AggregateArguments, type GroupArguments, groupedQuery, wholeQuery } from '../input/aggregate-query.ts';
import {
  activeOf,
  addRead,
  argumentsOf,
  membersOf,
  notOf,
  objectOf,
  refuseArguments,
  refuseInactive,
  type Selection,
  withoutArguments,
} from './compile-selection.ts';
import type { Compiling } from './compiling.ts';

/** `cartSummariesAggregate(where)` */
export function compileAggregate(selection: Selection, served: ServedVersion, compiling: Compiling): RootPart {
  refuseArguments(selection, ['where']);
  const projection = activeOf(served, compiling.versions);
  const { members, measures } = compileMeasures(selection, compiling);
  const argumentsFor = argumentsOf(selection);
  const read = addRead(compiling, (variables): ResponseRead => {
    const args = argumentsFor(variables) as AggregateArguments; // typed by the field's arguments
    const query = wholeQuery(projection, args, measures, compiling.versions);
    refuseInactive(query.where, compiling.versions);
    return { kind: 'aggregate', projection, query, by: [] };
  });
  return { kind: 'aggregate', read, members };
}

/** `cartSummariesGrouped(by, …)` */
export function compileGroups(
  selection: Selection,
  served: ServedVersion,
  maxPageSize: number,
  compiling: Compiling,
): RootPart {
  refuseArguments(selection, ['by', 'where', 'having', 'orderBy', 'first']);
  const projection = activeOf(served, compiling.versions);
  const { members, measures } = compileMeasures(selection, compiling);
  const argumentsFor = argumentsOf(selection);
  const read = addRead(compiling, (variables): ResponseRead => {
    const args = argumentsFor(variables) as unknown as GroupArguments; // typed by the field's arguments
    const { query, by } = groupedQuery(projection, args, measures, maxPageSize, compiling.versions);
    refuseInactive(query.where, compiling.versions);
    return { kind: 'aggregate', projection, query, by };
  });
  return { kind: 'groups', read, members };
}

/** Compiles the selected measures, and collects each measure to compute once. */
function compileMeasures(
  selection: Selection,
  compiling: Compiling,
): { readonly members: Members<AggregatePart>; readonly measures: readonly Measure[] } {
  const measures = new Map<string, Measure>();
  const type = objectOf(selection.field);
  const members = membersOf(compiling.selected(selection.nodes, type), type, (part): AggregatePart => {
    const { metadata: meaning, field, nodes } = withoutArguments(part);
    if (meaning.kind === 'groupKey') {
      const key = objectOf(field);
      return {
        kind: 'key',
        members: membersOf(compiling.selected(nodes, key), key, (inner) => ({
          kind: 'grouping',
          name: columnOf(inner),
        })),
      };
    }
    if (meaning.kind !== 'measure') throw notOf(part);
    const { of } = meaning;
    if (of === 'count') {
      measures.set(of, { kind: of });
      return { kind: 'count' };
    }
    const values = objectOf(field);
    return {
      kind: 'measures',
      of,
      members: membersOf(compiling.selected(nodes, values), values, (inner) => {
        const column = columnOf(inner);
        measures.set(`${of} ${column}`, { kind: of, column });
        return { kind: 'measure', column };
      }),
    };
  });
  return { members, measures: [...measures.values()] };
}

function columnOf(selection: Selection): string {
  const { metadata: meaning } = withoutArguments(selection);
  if (meaning.kind === 'column') return meaning.name;
  throw notOf(selection);
}
