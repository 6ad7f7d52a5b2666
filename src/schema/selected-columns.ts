import {
  type FieldNode,
  GraphQLIncludeDirective,
  type GraphQLResolveInfo,
  GraphQLSkipDirective,
  getDirectiveValues,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Projection } from '../projections/projection.ts';
import { fromColumns } from '../projections/relations.ts';

/** A way from a field down to rows, such as `['edges', 'node']`. */
export type SelectionPath = readonly string[];

/** The names of all that is selected on the ways' ends, below the field that is being resolved: through fragments and aliases, without what is skipped. */
export function selectedFields(info: GraphQLResolveInfo, paths: readonly SelectionPath[]): ReadonlySet<string> {
  return collect(info, paths).names;
}

/** What reads a projection's selected columns, and those that selected relations come from, from a field's resolve info. */
export function columnSelection(
  projection: Projection,
  paths: readonly SelectionPath[],
): (info: GraphQLResolveInfo) => readonly string[] {
  // A parsed document is used again and again; only @skip and @include make the same field select other columns.
  const known = new WeakMap<FieldNode, readonly string[]>();
  return (info) => {
    const [node, ...others] = info.fieldNodes;
    const before = node && others.length === 0 ? known.get(node) : undefined;
    if (before) return before;
    const { names, conditional } = collect(info, paths);
    const followed = Object.entries(projection.relations).filter(([name]) => names.has(name));
    const needed = new Set(followed.flatMap(([, relation]) => fromColumns(relation)));
    const columns = Object.keys(projection.columns).filter((name) => names.has(name) || needed.has(name));
    if (node && others.length === 0 && !conditional) known.set(node, columns);
    return columns;
  };
}

interface Collected {
  readonly names: Set<string>;
  /** Fragments by where they were met: spread again, they add nothing, and fragments that spread others twice would multiply. */
  readonly spread: Set<string>;
  conditional: boolean;
}

function collect(info: GraphQLResolveInfo, paths: readonly SelectionPath[]): Collected {
  const collected: Collected = { names: new Set(), spread: new Set(), conditional: false };
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
      // The type condition does not matter: a column too many is read, never one too few.
      visit(selection.selectionSet, paths, info, collected);
    } else {
      const place = `${selection.name.value} ${paths.map((path) => path.join('.')).join(' ')}`;
      const fragment = collected.spread.has(place) ? undefined : info.fragments[selection.name.value];
      collected.spread.add(place);
      if (fragment) visit(fragment.selectionSet, paths, info, collected);
    }
  }
}

function isIncluded(selection: SelectionNode, info: GraphQLResolveInfo, collected: Collected): boolean {
  if (!selection.directives?.length) return true;
  const skip = getDirectiveValues(GraphQLSkipDirective, selection, info.variableValues);
  const include = getDirectiveValues(GraphQLIncludeDirective, selection, info.variableValues);
  if (skip || include) collected.conditional = true;
  return skip?.if !== true && include?.if !== false;
}
