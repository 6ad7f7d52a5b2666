import { InputListRef } from '@pothos/core';
import pluralize from 'pluralize';
import type { Column } from '../../projections/columns/column.ts';
import type { AnyInput, Builder, Types } from '../builder/builder.ts';
import { columnDescription } from '../builder/descriptions.ts';
import type { TypeNames } from '../builder/type-names.ts';
import type { ColumnTypes } from './column-types.ts';

/** Creates the input types of `contains`: a part of an object or list, with the types that the column declares. */
export function createContainsTypes(builder: Builder, names: TypeNames) {
  const made = new Map<ColumnTypes, AnyInput>();

  /** `CartSummaryProductItemContains`: the fields to compare, each with its type. */
  function objectType(inside: ColumnTypes, owner: string): AnyInput {
    const known = made.get(inside);
    if (known !== undefined) return known;
    const ref = builder.inputRef<Record<string, unknown>>(names.claim(`${inside.prefix}Contains`, owner));
    made.set(inside, ref);
    const columns = Object.entries(inside.columns);
    ref.implement({
      description: `A part of \`${inside.prefix}\`. Only the fields that are given are compared.`,
      fields: (t) =>
        Object.fromEntries(
          columns.map(([name, column]) => [
            name,
            t.field({
              type: typeOf(column, name, inside, owner),
              required: false,
              description: column.flags.description ?? columnDescription(name, column, inside.columns, new Set()),
            }),
          ]),
        ) as never, // the fields are only known at run time
    });
    return ref;
  }

  /** `types` are those of the columns that contain this one. */
  function typeOf(column: Column, name: string, types: ColumnTypes, owner: string): AnyInput {
    const { type } = column;
    if (type.kind === 'list') {
      const item = typeOf(type.item, pluralize.singular(name), types, owner);
      return new InputListRef<Types, unknown>(item, !type.item.flags.nullable);
    }
    return type.kind === 'object'
      ? objectType(types.inside(column, name), owner)
      : (types.typeOf(column, name) as AnyInput); // scalars and enums are valid as input and output
  }

  return typeOf;
}
