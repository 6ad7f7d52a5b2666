import { ListRef } from '@pothos/core';
import pluralize from 'pluralize';
import type { Column, ColumnFlags, Columns } from '../projections/column.ts';
import { type Decimal, isDecimal } from '../projections/decimal.ts';
import type { Row } from '../projections/row-codec.ts';
import type { AnyOutput, Builder, ScalarName, Types } from './builder.ts';
import { meaning } from './field-meaning.ts';
import { pascalCase, type TypeNames } from './type-names.ts';

/** How the types of one projection's columns are made; they are remembered, so that filters and arguments use the same enum. */
export interface ColumnTypes {
  /** The type of a column's values. */
  typeOf(column: Column, name: string): AnyOutput;
  /** The fields of an object type with these columns. */
  fieldsOf(columns: Columns): readonly ColumnField[];
}

export interface ColumnField {
  readonly name: string;
  readonly type: AnyOutput;
  /** What it is the value of; none of what is computed. */
  readonly column?: Column;
  readonly nullable: boolean;
  readonly description: string | undefined;
  readonly deprecated: string | undefined;
  /** Reads by name only: the row may be of another version that has the same column. */
  readonly resolve: (row: Row) => unknown;
}

/** `prefix`: the name of the type that the columns belong to. */
export function createColumnTypes(builder: Builder, names: TypeNames, prefix: string, owner: string): ColumnTypes {
  const made = new Map<Column, AnyOutput>();

  function typeOf(column: Column, name: string): AnyOutput {
    const known = made.get(column);
    if (known !== undefined) return known;
    const type = make(column, name);
    made.set(column, type);
    return type;
  }

  function make({ type, flags }: Column, name: string): AnyOutput {
    switch (type.kind) {
      case 'enum':
        return builder.enumType(claim(name), { values: type.values });
      case 'object':
        return objectType(claim(name), type.fields);
      case 'list':
        return new ListRef<Types, unknown>(typeOf(type.item, pluralize.singular(name)), type.item.flags.nullable);
      default:
        return scalarNameOf(type.kind, flags);
    }
  }

  function claim(name: string): string {
    return names.claim(`${prefix}${pascalCase(name)}`, `${owner}, column '${name}'`);
  }

  function objectType(name: string, columns: Columns): AnyOutput {
    const nested = createColumnTypes(builder, names, name, owner);
    return implement(builder, name, nested.fieldsOf(columns));
  }

  return {
    typeOf,
    fieldsOf: (columns) =>
      Object.entries(columns).map(([name, column]) => ({
        name,
        column,
        type: typeOf(column, name),
        nullable: column.flags.nullable,
        description: column.flags.description,
        deprecated: column.flags.deprecated,
        resolve: resolverOf(column, name),
      })),
  };
}

/** Makes an object type of rows, or of objects in rows. */
export function implement(builder: Builder, name: string, fields: readonly ColumnField[], description?: string) {
  return builder.objectRef<Row>(name).implement({
    ...(description === undefined ? {} : { description }),
    fields: (t) =>
      Object.fromEntries(
        fields.map((field) => [
          field.name,
          t.field({
            type: field.type,
            nullable: field.nullable,
            resolve: field.resolve,
            ...(field.column ? meaning({ kind: 'column', name: field.name, column: field.column }) : {}),
            ...(field.description === undefined ? {} : { description: field.description }),
            ...(field.deprecated === undefined ? {} : { deprecationReason: field.deprecated }),
          }),
        ]),
      ),
  });
}

type ScalarKind = 'text' | 'integer' | 'bigint' | 'decimal' | 'boolean' | 'uuid' | 'date' | 'timestamptz' | 'json';

const scalarNames: Readonly<Record<ScalarKind, ScalarName>> = {
  text: 'String',
  integer: 'Int',
  bigint: 'BigInt',
  decimal: 'Decimal',
  boolean: 'Boolean',
  uuid: 'UUID',
  date: 'Date',
  timestamptz: 'DateTime',
  json: 'JSON',
};

/** Texts and UUIDs that name a row are IDs. */
function scalarNameOf(kind: ScalarKind, flags: ColumnFlags): ScalarName {
  return flags.primaryKey && (kind === 'text' || kind === 'uuid') ? 'ID' : scalarNames[kind];
}

function resolverOf(column: Column, name: string): (row: Row) => unknown {
  const written = writerOf(column);
  return written ? (row) => written(row[name]) : (row) => row[name];
}

/** What brings a value into the form that its scalar writes; none where it is in that form. */
function writerOf({ type }: Column): ((value: unknown) => unknown) | undefined {
  if (type.kind === 'decimal') return (value) => (isDecimal(value) ? (value as Decimal).toFixed(type.scale) : value);
  if (type.kind !== 'list') return undefined;
  const item = writerOf(type.item);
  return item && ((values) => (Array.isArray(values) ? values.map(item) : values));
}
