import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLIncludeDirective,
  type GraphQLObjectType,
  type GraphQLSchema,
  GraphQLSkipDirective,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  visit,
} from 'graphql';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import { relatedFilters } from '../../projections/queries/filter-columns.ts';
import type { ResponseQuery, ResponseRead, ResponseShape } from '../../projections/queries/response-query.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import { directiveValues } from '../contract/graphql-release.ts';
import { compileRoots } from './compile-fields.ts';
import { type Compiling, NotCompiled, type Variables } from './compiling.ts';

/** An operation that one statement answers, for any values of its variables. */
export interface CompiledOperation {
  /** Returns the reads for these variables. @throws NotCompiled, RefoldError `BAD_USER_INPUT` */
  query(variables: Variables): ResponseQuery;
}

export interface CompileInput {
  readonly schema: GraphQLSchema;
  readonly versions: VersionMap;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** The variables that `@skip` and `@include` depend on: see {@link conditionNames}. */
  readonly conditions: Variables;
}

// More than a user interface selects. For larger statements, planning in PostgreSQL takes longer than compiling saves.
const maxFields = 500;
// The same limit as for relations that are read level by level (`runtime/reads/related-reads.ts`).
const maxRelatedRows = 100_000;

/**
 * Compiles an operation of a validated document to one statement, if it is a query that selects only generated fields backed by tables. The
 * executor handles everything else.
 *
 * @throws NotCompiled with the reason
 */
export function compileOperation({
  schema,
  versions,
  document,
  operation,
  conditions,
}: CompileInput): CompiledOperation {
  if (operation.operation !== 'query') throw new NotCompiled(`It is a ${operation.operation}.`);
  if (operation.directives?.length) throw new NotCompiled(`The operation has a directive.`);
  const query = schema.getQueryType();
  if (!query) throw new NotCompiled('There are no queries.');
  const fragments = new Map(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
  let fields = 0;
  const compiling: Compiling = {
    versions,
    reads: [],
    within: new Map(),
    selected(nodes, type) {
      const found = new Map<string, FieldNode[]>();
      const spread = new Set<string>();
      for (const { selectionSet } of nodes)
        if (selectionSet) collect(selectionSet, type, { schema, fragments, conditions, spread, found });
      fields += found.size;
      if (fields > maxFields) throw new NotCompiled(`It selects more than ${maxFields} fields.`);
      return found;
    },
  };
  const root = {
    kind: Kind.FIELD,
    name: { kind: Kind.NAME, value: '' },
    selectionSet: operation.selectionSet,
  } as const;
  const shape: ResponseShape = { roots: compileRoots(compiling.selected([root], query), query, compiling) };
  const stores = new Set([...versions.served.values()].map(({ projection }) => projection.store));
  const haveSeveralStores = stores.size > 1;
  return {
    query(variables) {
      const reads = compiling.reads.map((read) => read(variables));
      refuseTooMany(reads, compiling);
      if (haveSeveralStores) refuseSeveralStores(reads);
      return { shape, reads };
    },
  };
}

/** Returns the variables that decide what an operation selects. */
export function conditionNames(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    Directive({ name, arguments: given }) {
      if (name.value !== 'skip' && name.value !== 'include') return;
      for (const { value } of given ?? []) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names];
}

interface Collecting {
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly conditions: Variables;
  readonly spread: Set<string>;
  readonly found: Map<string, FieldNode[]>;
}

function collect(set: SelectionSetNode, type: GraphQLObjectType, collecting: Collecting): void {
  for (const selection of set.selections) {
    if (!isIncluded(selection, collecting.conditions)) continue;
    switch (selection.kind) {
      case Kind.FIELD: {
        const key = selection.alias?.value ?? selection.name.value;
        const others = collecting.found.get(key);
        if (others) others.push(selection);
        else collecting.found.set(key, [selection]);
        break;
      }
      case Kind.INLINE_FRAGMENT:
        if (applies(selection.typeCondition?.name.value, type, collecting))
          collect(selection.selectionSet, type, collecting);
        break;
      case Kind.FRAGMENT_SPREAD: {
        const name = selection.name.value;
        const fragment = collecting.spread.has(name) ? undefined : collecting.fragments.get(name);
        collecting.spread.add(name);
        if (fragment && applies(fragment.typeCondition.name.value, type, collecting))
          collect(fragment.selectionSet, type, collecting);
      }
    }
  }
}

function isIncluded(selection: SelectionNode, conditions: Variables): boolean {
  const directives = selection.directives ?? [];
  if (directives.length === 0) return true;
  const other = directives.find(({ name }) => name.value !== 'skip' && name.value !== 'include');
  if (other) throw new NotCompiled(`It has the directive @${other.name.value}.`);
  const skip = directiveValues(GraphQLSkipDirective, selection, conditions);
  const include = directiveValues(GraphQLIncludeDirective, selection, conditions);
  return skip?.if !== true && include?.if !== false;
}

function applies(condition: string | undefined, type: GraphQLObjectType, { schema }: Collecting): boolean {
  if (condition === undefined || condition === type.name) return true;
  const other = schema.getType(condition);
  if (isObjectType(other)) return false;
  if (isInterfaceType(other)) return schema.isSubType(other, type);
  throw new NotCompiled(`It has a fragment on ${condition}.`);
}

/** One statement reads one database. The executor says whether the operation may read several. */
function refuseSeveralStores(reads: readonly ResponseRead[]): void {
  const [first] = reads;
  const isElsewhere = (projection: Projection) => projection.store !== first?.projection.store;
  const leads = (where: RowFilter | null): boolean =>
    relatedFilters(where).some(({ target, filter }) => isElsewhere(target.projection) || leads(filter));
  for (const read of reads) {
    const where = 'query' in read ? read.query.where : read.where;
    if (isElsewhere(read.projection) || leads(where)) throw new NotCompiled('It reads several stores.');
  }
}

/** Assumes that each page of a relation is full. If that could be too much, the executor runs the operation and counts the actual rows. */
function refuseTooMany(reads: readonly ResponseRead[], { within }: Compiling): void {
  const limitOf = (index: number) => {
    const read = reads[index];
    return read?.kind === 'page' ? read.query.limit : 1;
  };
  for (const [index, outer] of within) {
    if (outer.length === 0) continue;
    const most = outer.reduce((rows, other) => rows * limitOf(other), limitOf(index));
    if (most > maxRelatedRows) throw new NotCompiled(`It may read ${most} related rows.`);
  }
}
