import { type GraphQLObjectType, getNamedType, isObjectType } from 'graphql';
import type { Column } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { fromColumns, type Relation } from '../../projections/projection/relations.ts';
import type { ServedVersion } from '../../projections/projection/version-map.ts';
import type {
  ColumnPart,
  EdgePart,
  Members,
  PageInfoPart,
  PagePart,
  ResponseRead,
  RootPart,
  RowPart,
} from '../../projections/queries/response-query.ts';
import type { FieldMetadata } from '../builder/field-metadata.ts';
import { type ListArguments, listQuery } from '../input/list-arguments.ts';
import { boundOf } from '../types/connection.ts';
import { canonicalInput } from '../values/canonical-input.ts';
import { orderName } from '../values/cursor.ts';
import { compileAggregate, compileGroups } from './compile-aggregates.ts';
import {
  activeOf,
  addRead,
  argumentsOf,
  fixedArguments,
  membersOf,
  notOf,
  objectOf,
  refuseArguments,
  refuseInactive,
  type Selected,
  type Selection,
  withoutArguments,
} from './compile-selection.ts';
import { type Compiling, NotCompiled } from './compiling.ts';

export function compileRoots(selected: Selected, query: GraphQLObjectType, compiling: Compiling): Members<RootPart> {
  return membersOf(selected, query, (selection): RootPart => {
    const { metadata: meaning } = selection;
    if (meaning.kind === 'row') return compileLookUp(selection, meaning, compiling);
    if (meaning.kind === 'list') {
      return { kind: 'page', ...compilePage(selection, meaning.served, meaning.maxPageSize, null, [], compiling) };
    }
    if (meaning.kind === 'aggregate') return compileAggregate(selection, meaning.served, compiling);
    if (meaning.kind === 'groups') return compileGroups(selection, meaning.served, meaning.maxPageSize, compiling);
    throw notOf(selection);
  });
}

function compileLookUp(
  selection: Selection,
  { served, by }: Extract<FieldMetadata, { readonly kind: 'row' }>,
  compiling: Compiling,
): RootPart {
  refuseArguments(selection, by);
  const projection = activeOf(served, compiling.versions);
  const { row, columns } = compileRow(selection, projection, [], compiling);
  const argumentsFor = argumentsOf(selection);
  const read = addRead(compiling, (variables): ResponseRead => {
    const args = argumentsFor(variables);
    const key = by.map((name) => canonicalInput(projection.columns[name] as Column, name, args[name])); // one argument for each
    return { kind: 'row', projection, columns, by, key, where: null };
  });
  return { kind: 'row', read, row };
}

/** `within`: the pages that contain this one. */
function compilePage(
  selection: Selection,
  served: ServedVersion,
  maxPageSize: number,
  related: string | null,
  within: readonly number[],
  compiling: Compiling,
): { readonly read: number; readonly page: Members<PagePart> } {
  refuseArguments(selection, ['where', 'orderBy', 'first', 'after', 'last', 'before']);
  const projection = activeOf(served, compiling.versions);
  const argumentsFor = argumentsOf(selection);
  const selectedColumns = new Set<string>();
  let columns: readonly string[] = [];
  const read = addRead(compiling, (variables): ResponseRead => {
    const args = argumentsFor(variables) as ListArguments; // typed by the field's arguments
    const { query } = listQuery(projection, args, columns, maxPageSize, compiling.versions);
    refuseInactive(query.where, compiling.versions);
    return { kind: 'page', projection, query, related, order: orderName(projection, query.orderBy) };
  });
  compiling.within.set(read, within);
  const type = objectOf(selection.field);
  const rowOf = (node: Selection) => {
    const compiled = compileRow(node, projection, [...within, read], compiling);
    for (const column of compiled.columns) selectedColumns.add(column);
    return compiled.row;
  };
  const page = membersOf(compiling.selected(selection.nodes, type), type, (part): PagePart => {
    const { kind } = part.metadata;
    if (kind !== 'totalCount') withoutArguments(part);
    switch (kind) {
      case 'nodes':
        return { kind, row: rowOf(part) };
      case 'edges': {
        const edge = objectOf(part.field);
        const members = membersOf(compiling.selected(part.nodes, edge), edge, (inner): EdgePart => {
          const { metadata: meaning } = withoutArguments(inner);
          if (meaning.kind === 'cursor') return { kind: 'cursor' };
          if (meaning.kind === 'node') return { kind: 'node', row: rowOf(inner) };
          throw notOf(inner);
        });
        return { kind, members };
      }
      case 'pageInfo': {
        const info = objectOf(part.field);
        return { kind, members: membersOf(compiling.selected(part.nodes, info), info, pageInfoPart) };
      }
      case 'totalCount': {
        refuseArguments(part, ['upTo']);
        const { upTo } = fixedArguments(part) as { readonly upTo?: number | null }; // typed by the field's arguments
        return { kind, upTo: boundOf(upTo) };
      }
      default:
        throw notOf(part);
    }
  });
  columns = [...selectedColumns];
  return { read, page };
}

function pageInfoPart(selection: Selection): PageInfoPart {
  const { kind } = withoutArguments(selection).metadata;
  switch (kind) {
    case 'hasNextPage':
    case 'hasPreviousPage':
    case 'startCursor':
    case 'endCursor':
      return { kind };
    default:
      throw notOf(selection);
  }
}

/** Compiles the selection of a row, and collects the columns that it reads. */
function compileRow(
  selection: Selection,
  projection: Projection,
  within: readonly number[],
  compiling: Compiling,
): { readonly row: Members<RowPart>; readonly columns: readonly string[] } {
  const type = objectOf(selection.field);
  const columns = new Set<string>();
  const row = membersOf(compiling.selected(selection.nodes, type), type, (part): RowPart => {
    const { metadata: meaning } = part;
    switch (meaning.kind) {
      case 'column':
        columns.add(meaning.name);
        return compileColumn(withoutArguments(part), meaning.column, projection, compiling);
      case 'globalId':
        withoutArguments(part);
        for (const column of projection.keyColumns) columns.add(column);
        return { kind: 'globalId' };
      case 'relation':
        for (const column of fromColumns(meaning.relation)) columns.add(column);
        return compileRelation(part, meaning, meaning.relation, within, compiling);
      default:
        throw notOf(part);
    }
  });
  return { row, columns: [...columns] };
}

function compileRelation(
  selection: Selection,
  { target, maxPageSize }: Extract<FieldMetadata, { readonly kind: 'relation' }>,
  relation: Relation,
  within: readonly number[],
  compiling: Compiling,
): RowPart {
  if (relation.kind === 'many') {
    const { from, to } = relation;
    return { kind: 'many', from, to, ...compilePage(selection, target, maxPageSize, to, within, compiling) };
  }
  const projection = activeOf(target, compiling.versions);
  const { row, columns } = compileRow(withoutArguments(selection), projection, within, compiling);
  const one: ResponseRead = { kind: 'one', projection, columns, where: null };
  return { kind: 'one', from: relation.from, read: addRead(compiling, () => one), row };
}

function compileColumn(selection: Selection, column: Column, projection: Projection, compiling: Compiling): ColumnPart {
  const { metadata: meaning, field, nodes } = selection;
  const name = meaning.kind === 'column' ? meaning.name : '';
  const { kind } = column.type;
  // A document written by SQL must be canonicalized when it is read.
  if ((kind === 'object' || kind === 'list') && projection.sqlFold)
    throw new NotCompiled(`'${name}' of ${projection.id} is a document that evolveSql has made.`);
  const type = getNamedType(field.type);
  if (!isObjectType(type)) return { kind: 'column', name, members: null };
  const members = membersOf(compiling.selected(nodes, type), type, (part): ColumnPart => {
    if (part.metadata.kind !== 'column') throw notOf(part);
    return compileColumn(withoutArguments(part), part.metadata.column, projection, compiling);
  });
  return { kind: 'column', name, members };
}
