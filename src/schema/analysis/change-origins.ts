import {
  type GraphQLNamedType,
  type GraphQLSchema,
  type GraphQLType,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
} from 'graphql';
import { metadataOf } from '../builder/field-metadata.ts';
import type { SchemaChange } from './schema-diff.ts';

/** A schema, and the name of the projection's row type in it. */
export interface RowSchema {
  readonly schema: GraphQLSchema;
  readonly rowType: string;
}

/**
 * Returns the origin of each change between two versions of a projection: the field of the row whose filters, orders, groups and aggregates
 * it concerns, such as `Balance.amount`. A change of the row itself, or one that follows from no field, is its own origin.
 */
export function changeOrigins(
  older: RowSchema,
  newer: RowSchema,
  changes: readonly SchemaChange[],
): (change: SchemaChange) => string {
  const sides = [older, newer].map(indexed);
  const own = new Set(sides.flatMap(({ rowTypes }) => [...rowTypes]));
  const rowFields = new Set(sides.flatMap(({ fields }) => fields));
  const changed = new Set(changes.map(({ path }) => fieldOf(path)));
  const renamed = older.rowType !== newer.rowType;

  /** Returns the row's field that a name in a derived type belongs to: `registeredAt` for `registeredAtDay`. */
  function rowField(name: string): string | undefined {
    if (rowFields.has(name)) return name;
    const stem = /^(.+)(?:Hour|Day|Month)$/.exec(name)?.[1];
    return stem !== undefined && rowFields.has(stem) ? stem : undefined;
  }

  function fieldOrigin(type: string, field: string): string {
    // If the row type is renamed, every field of every derived type changes, and no single column is the reason.
    if (renamed) return older.schema.getType(type) ? older.rowType : newer.rowType;
    return `${older.rowType}.${field}`;
  }

  function originOf(path: string, seen: ReadonlySet<string>): string {
    const [, type = path, member, argument] = /^([^.]+)\.([^(]+)(?:\((.+):\))?$/.exec(path) ?? [];
    if (member === undefined) return originOfType(type, seen);
    if (own.has(type)) return `${type}.${member}`;
    const isRoot = /^(?:Query|Mutation|Subscription)$/.test(type);
    for (const name of isRoot ? argumentsOf(type, member, argument) : [argument, member]) {
      const field = name === undefined ? undefined : rowField(name);
      if (field !== undefined) return fieldOrigin(type, field);
    }
    if (isRoot) return `${type}.${member}`;
    for (const referred of sides.flatMap(({ refersTo }) => refersTo.get(`${type}.${member}`) ?? []))
      if (isOneSided(referred) && !seen.has(referred)) return originOfType(referred, seen);
    return `${type}.${member}`;
  }

  function argumentsOf(type: string, field: string, argument: string | undefined): readonly (string | undefined)[] {
    return argument === undefined ? sides.flatMap(({ args }) => args.get(`${type}.${field}`) ?? []) : [argument];
  }

  /** The origin of an added or removed type: its fields that belong to the row's fields, or else what refers to it. */
  function originOfType(name: string, before: ReadonlySet<string>): string {
    if (name === older.rowType || name === newer.rowType) return name;
    const seen = new Set([...before, name]);
    const fields = own.has(name)
      ? []
      : sides.flatMap(({ members }) => members.get(name) ?? []).flatMap((member) => rowField(member) ?? []);
    const field = fields.find((one) => changed.has(`${older.rowType}.${one}`)) ?? fields[0];
    if (field !== undefined) return fieldOrigin(name, field);
    for (const referrer of sides.flatMap(({ referrers }) => referrers.get(name) ?? [])) {
      const [type = ''] = referrer.split('.');
      if (seen.has(type)) continue;
      if (changed.has(referrer)) return originOf(referrer, seen);
      if (isOneSided(type)) return originOfType(type, seen);
    }
    return name;
  }

  function isOneSided(type: string): boolean {
    return (older.schema.getType(type) === undefined) !== (newer.schema.getType(type) === undefined);
  }

  return ({ path }) => originOf(path, new Set());
}

/** `Query.balances` for `Query.balances(where:)`. */
function fieldOf(path: string): string {
  return path.replace(/\(.*$/, '');
}

/** Lookup tables for one schema. */
interface Indexed {
  /** The row's type, and the object and enum types of its columns. */
  readonly rowTypes: ReadonlySet<string>;
  /** The names of the row's fields. */
  readonly fields: readonly string[];
  /** The names of each type's fields or values. */
  readonly members: ReadonlyMap<string, readonly string[]>;
  /** The names of the arguments of each `Type.field`. */
  readonly args: ReadonlyMap<string, readonly string[]>;
  /** The types of each `Type.field` and of its arguments. */
  readonly refersTo: ReadonlyMap<string, readonly string[]>;
  /** Each `Type.field` that has the type, or an argument of it. */
  readonly referrers: ReadonlyMap<string, readonly string[]>;
}

function indexed({ schema, rowType }: RowSchema): Indexed {
  const members = new Map<string, string[]>();
  const args = new Map<string, string[]>();
  const refersTo = new Map<string, string[]>();
  const referrers = new Map<string, string[]>();
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith('__')) continue;
    members.set(type.name, isEnumType(type) ? type.getValues().map(({ name }) => name) : Object.keys(fieldsOf(type)));
    for (const [name, field] of Object.entries(fieldsOf(type))) {
      const path = `${type.name}.${name}`;
      args.set(
        path,
        field.args.map((argument) => argument.name),
      );
      const referred = [field, ...field.args].map((one) => getNamedType(one.type).name);
      refersTo.set(path, referred);
      for (const one of referred) referrers.set(one, [...(referrers.get(one) ?? []), path]);
    }
  }
  return {
    rowTypes: rowTypesOf(schema, rowType),
    fields: members.get(rowType) ?? [],
    members,
    args,
    refersTo,
    referrers,
  };
}

function rowTypesOf(schema: GraphQLSchema, rowType: string): Set<string> {
  const found = new Set<string>([rowType]);
  const add = (type: GraphQLNamedType) => {
    if (found.has(type.name) || !(isObjectType(type) || isEnumType(type))) return;
    found.add(type.name);
    for (const field of Object.values(fieldsOf(type))) add(getNamedType(field.type));
  };
  const row = schema.getType(rowType);
  if (!isObjectType(row)) return found;
  for (const field of Object.values(row.getFields()))
    if (metadataOf(field)?.kind === 'column') add(getNamedType(field.type));
  return found;
}

type Fields = Readonly<Record<string, Typed & { readonly args: readonly (Typed & { readonly name: string })[] }>>;

interface Typed {
  readonly type: GraphQLType;
}

function fieldsOf(type: GraphQLNamedType): Fields {
  if (isObjectType(type) || isInterfaceType(type)) return type.getFields();
  if (!isInputObjectType(type)) return {};
  return Object.fromEntries(Object.entries(type.getFields()).map(([name, field]) => [name, { ...field, args: [] }]));
}
