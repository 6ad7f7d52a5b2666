import { ListRef } from '@pothos/core';
import pluralize from 'pluralize';
import type { Column, ColumnKind, Columns } from '../../projections/columns/column.ts';
import { type Decimal, isDecimal } from '../../projections/columns/decimal.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { AnyOutput, Builder, Types } from '../builder/builder.ts';
import { columnDescription, words } from '../builder/descriptions.ts';
import { metadata } from '../builder/field-metadata.ts';
import { textScalar } from '../builder/ids.ts';
import { pascalCase, type TypeNames } from '../builder/type-names.ts';
import { columnKinds } from '../values/column-kinds.ts';

/** Creates the types of one projection's columns. They are cached, because filters and arguments must use the same enum. */
export interface ColumnTypes {
  /** The name of the type that has the columns. */
  readonly prefix: string;
  readonly columns: Columns;
  /** Returns the column types inside an object column. */
  inside(column: Column, name: string): ColumnTypes;
  /** Returns the type of a column's values. */
  typeOf(column: Column, name: string): AnyOutput;
  /** Returns the fields of an object type with these columns. */
  fieldsOf(): readonly ColumnField[];
}

export interface ColumnField {
  readonly name: string;
  readonly type: AnyOutput;
  /** The column of the value; undefined for computed fields. */
  readonly column?: Column;
  readonly nullable: boolean;
  readonly description: string;
  readonly deprecated: string | undefined;
  /** Must read by name only: the row may be of another version that has the same column. */
  readonly resolve: (row: Row) => unknown;
}

/** `prefix` is the name of the type that has the columns. `ids` are the text columns that are ids regardless of their names. */
export function createColumnTypes(
  builder: Builder,
  names: TypeNames,
  prefix: string,
  owner: string,
  columns: Columns,
  ids: ReadonlySet<string> = new Set(),
): ColumnTypes {
  const made = new Map<Column, AnyOutput>();
  const insides = new Map<Column, ColumnTypes>();

  function typeOf(column: Column, name: string): AnyOutput {
    const { type } = column;
    switch (type.kind) {
      case 'text':
        return textScalar(name, ids);
      case 'enum':
      case 'object': {
        const known = made.get(column) ?? make(column, type, name);
        made.set(column, known);
        return known;
      }
      case 'list':
        return new ListRef<Types, unknown>(typeOf(type.item, pluralize.singular(name)), type.item.flags.nullable);
      default:
        return columnKinds[type.kind].scalar;
    }
  }

  function make(column: Column, type: NamedKind, name: string): AnyOutput {
    if (type.kind === 'object') return objectType(column, claim(name), name, type.fields);
    return builder.enumType(claim(name), {
      description: `The values of \`${name}\` of \`${prefix}\`.`,
      values: enumValues(name, type.values),
    });
  }

  function claim(name: string): string {
    return names.claim(`${prefix}${pascalCase(name)}`, `${owner}, column '${name}'`);
  }

  function objectType(column: Column, type: string, name: string, columns: Columns): AnyOutput {
    const nested = createColumnTypes(builder, names, type, owner, columns);
    insides.set(column, nested);
    const description = `A part of \`${prefix}\`: ${words(name).toLowerCase()}.`;
    return implement(builder, type, nested.fieldsOf(), description);
  }

  return {
    prefix,
    columns,
    typeOf,
    inside(column, name) {
      typeOf(column, name); // creates them if they do not exist yet
      const types = insides.get(column);
      if (!types) throw new TypeError(`The column '${name}' is no object.`);
      return types;
    },
    fieldsOf: () =>
      Object.entries(columns).map(([name, column]) => ({
        name,
        column,
        type: typeOf(column, name),
        nullable: column.flags.nullable,
        description: column.flags.description ?? columnDescription(name, column, columns, ids),
        deprecated: column.flags.deprecated,
        resolve: resolverOf(column, name),
      })),
  };
}

/** Creates an object type for rows, or for objects in rows. */
export function implement(builder: Builder, name: string, fields: readonly ColumnField[], description: string) {
  return builder.objectRef<Row>(name).implement({
    description,
    fields: (t) =>
      Object.fromEntries(
        fields.map((field) => [
          field.name,
          t.field({
            type: field.type,
            nullable: field.nullable,
            resolve: field.resolve,
            ...(field.column ? metadata({ kind: 'column', name: field.name, column: field.column }) : {}),
            description: field.description,
            ...(field.deprecated === undefined ? {} : { deprecationReason: field.deprecated }),
          }),
        ]),
      ),
  });
}

/** The values of an enum, each described as a value of the column or property. */
export function enumValues(name: string, values: readonly string[]) {
  return Object.fromEntries(values.map((value) => [value, { description: `\`${name}\` is ${value}.` }]));
}

/** Kinds that need a type of their own. */
type NamedKind = Extract<ColumnKind, { readonly kind: 'enum' | 'object' }>;

function resolverOf(column: Column, name: string): (row: Row) => unknown {
  const written = writerOf(column);
  return written ? (row) => written(row[name]) : (row) => row[name];
}

/** Returns a function that formats a value for its scalar; undefined if no conversion is needed. */
function writerOf({ type }: Column): ((value: unknown) => unknown) | undefined {
  if (type.kind === 'decimal') return (value) => (isDecimal(value) ? (value as Decimal).toFixed(type.scale) : value);
  if (type.kind !== 'list') return undefined;
  const item = writerOf(type.item);
  return item && ((values) => (Array.isArray(values) ? values.map(item) : values));
}
