import {
  type FieldNode,
  GraphQLIncludeDirective,
  type GraphQLResolveInfo,
  GraphQLSkipDirective,
  isObjectType,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Projection } from '../../projections/projection/projection.ts';
import { fromColumns } from '../../projections/projection/relations.ts';
import { computedFields } from '../builder/computed-fields.ts';
import { directiveValues, variablesOf } from '../contract/graphql-release.ts';

/** A path from a field down to rows, such as `['edges', 'node']`. */
export type SelectionPath = readonly string[];

/**
 * Returns the names of the fields selected at the ends of the paths, below the field that is being resolved. Includes fragments and
 * aliases, excludes skipped fields.
 */
export function selectedFields(info: GraphQLResolveInfo, paths: readonly SelectionPath[]): ReadonlySet<string> {
  return collect(info, paths, undefined).names;
}

/**
 * Returns a function that reads the selected columns of a projection from a field's resolve info, including the columns that selected
 * relations and computed fields need.
 */
export function columnSelection(
  projection: Projection,
  paths: readonly SelectionPath[],
): (info: GraphQLResolveInfo) => readonly string[] {
  // Parsed documents are reused. Only @skip and @include make the same field select other columns.
  const known = new WeakMap<FieldNode, readonly string[]>();
  return (info) => {
    const [node, ...others] = info.fieldNodes;
    const before = node && others.length === 0 ? known.get(node) : undefined;
    if (before) return before;
    const { names, conditional } = collect(info, paths, projection.graphql.type);
    const followed = Object.entries(projection.relations).filter(([name]) => names.has(name));
    const computed = [...computedFields(projection)].filter(([name]) => names.has(name));
    const needed = new Set([
      ...followed.flatMap(([, relation]) => fromColumns(relation)),
      ...computed.flatMap(([, columns]) => columns),
    ]);
    const columns = Object.keys(projection.columns).filter((name) => names.has(name) || needed.has(name));
    if (node && others.length === 0 && !conditional) known.set(node, columns);
    return columns;
  };
}

interface Collected {
  readonly names: Set<string>;
  /** Fragments by the place where they were found. Each is visited once per place: fragments that spread others twice would multiply. */
  readonly spread: Set<string>;
  conditional: boolean;
  /** The type of the rows at the ends of the paths, if it is known. */
  readonly type: string | undefined;
}

function collect(info: GraphQLResolveInfo, paths: readonly SelectionPath[], type: string | undefined): Collected {
  const collected: Collected = { names: new Set(), spread: new Set(), conditional: false, type };
  for (const { selectionSet } of info.fieldNodes) if (selectionSet) visit(selectionSet, paths, info, collected);
  return collected;
}

function visit(
  set: SelectionSetNode,
  paths: readonly SelectionPath[],
  info: GraphQLResolveInfo,
  collected: Collected,
): void {
  for (const selection of set.selections) {
    if (!isIncluded(selection, info, collected)) continue;
    if (selection.kind === Kind.FIELD) {
      const name = selection.name.value;
      if (paths.some((path) => path.length === 0)) collected.names.add(name);
      const deeper = paths.filter((path) => path[0] === name).map((path) => path.slice(1));
      if (deeper.length > 0 && selection.selectionSet) visit(selection.selectionSet, deeper, info, collected);
    } else if (selection.kind === Kind.INLINE_FRAGMENT) {
      if (applies(selection.typeCondition?.name.value, paths, info, collected))
        visit(selection.selectionSet, paths, info, collected);
    } else {
      const place = `${selection.name.value} ${paths.map((path) => path.join('.')).join(' ')}`;
      const fragment = collected.spread.has(place) ? undefined : info.fragments[selection.name.value];
      collected.spread.add(place);
      if (fragment && applies(fragment.typeCondition.name.value, paths, info, collected))
        visit(fragment.selectionSet, paths, info, collected);
    }
  }
}

function isIncluded(selection: SelectionNode, info: GraphQLResolveInfo, collected: Collected): boolean {
  if (!selection.directives?.length) return true;
  const variables = variablesOf(info);
  const skip = directiveValues(GraphQLSkipDirective, selection, variables);
  const include = directiveValues(GraphQLIncludeDirective, selection, variables);
  if (skip || include) collected.conditional = true;
  return skip?.if !== true && include?.if !== false;
}

/**
 * If rows of several types are possible (`node`), a selection on another type does not count for this one: the viewer may be allowed to
 * read a column of one type and not the column with the same name of the other.
 */
function applies(
  condition: string | undefined,
  paths: readonly SelectionPath[],
  { schema }: GraphQLResolveInfo,
  { type }: Collected,
): boolean {
  if (condition === undefined || type === undefined || condition === type) return true;
  return !(paths.every((path) => path.length === 0) && isObjectType(schema.getType(condition)));
}
