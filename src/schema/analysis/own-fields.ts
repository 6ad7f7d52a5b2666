import {
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isObjectType,
} from 'graphql';
import type { Projection } from '../../projections/projection/projection.ts';
import { metadataOf } from '../builder/field-metadata.ts';
import type { TypeNames } from '../builder/type-names.ts';

type AnyField = GraphQLField<unknown, unknown>;

/** A field of the application that returns rows of read models. */
export interface LeadingField {
  /** The type that has the field. */
  readonly parent: string;
  readonly name: string;
  /** The projections whose rows it may return. */
  readonly targets: readonly string[];
}

/** The fields that the application adds to a schema. */
export interface OwnFields {
  /** The queries, mutations and subscriptions. */
  readonly roots: ReadonlySet<AnyField>;
  /** The names of fields whose resolvers may read. */
  readonly reading: ReadonlySet<string>;
  readonly leading: ReadonlyMap<AnyField, LeadingField>;
}

const known = new WeakMap<GraphQLSchema, OwnFields>();
const none: OwnFields = { roots: new Set(), reading: new Set(), leading: new Map() };

export function ownFields(schema: GraphQLSchema): OwnFields {
  return known.get(schema) ?? none;
}

/** Returns the application's fields of a projection's rows that lead to rows, with the projections that they lead to. */
export function ownRelations(schema: GraphQLSchema, { graphql }: Projection): ReadonlyMap<string, readonly string[]> {
  const fields = [...ownFields(schema).leading.values()].filter(({ parent }) => parent === graphql.type);
  return new Map(fields.map(({ name, targets }) => [name, targets]));
}

/** Finds the fields that an extension added to the schema. */
export function findOwnFields(schema: GraphQLSchema, names: TypeNames, projections: readonly Projection[]): OwnFields {
  const rowTypes = new Map(projections.map(({ graphql, name }) => [graphql.type, name]));
  const targetsOf = createTargets(schema, projections);
  const roots = new Set<AnyField>();
  const reading = new Set<string>();
  const leading = new Map<AnyField, LeadingField>();
  const rootTypes = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    const isRoot = rootTypes.includes(type);
    // Of the generated types, only roots and rows can get fields.
    if (!isRoot && !rowTypes.has(type.name) && names.ownerOf(type.name) !== undefined) continue;
    for (const field of Object.values(type.getFields())) {
      if (metadataOf(field) || (isRoot && isGenerated(type, field, names))) continue;
      if (isRoot) roots.add(field);
      if (isRoot || mayRead(field)) reading.add(field.name);
      const targets = targetsOf(field);
      if (targets.length > 0) leading.set(field, { parent: type.name, name: field.name, targets });
    }
  }
  const found = { roots, reading, leading };
  known.set(schema, found);
  return found;
}

// They are in the schema of every application, and claim no names.
const unclaimed = ['_meta', '_service', '_entities'];

function isGenerated(type: GraphQLObjectType, field: AnyField, names: TypeNames): boolean {
  return names.ownerOfField(type.name, field.name) !== undefined || unclaimed.includes(field.name);
}

/** A field of a row that is a scalar, and whose resolver takes no context, is computed from the row. */
function mayRead(field: AnyField): boolean {
  if (isCompositeType(getNamedType(field.type))) return true;
  const resolve = field.extensions.pothosOriginalResolve; // as the application wrote it
  return typeof resolve === 'function' && resolve.length > 2;
}

function createTargets(schema: GraphQLSchema, projections: readonly Projection[]) {
  const byType = new Map(
    projections.flatMap(({ graphql: { type }, name }) => [
      [type, name],
      [`${type}Connection`, name],
    ]),
  );
  return (field: AnyField): readonly string[] => {
    const type = getNamedType(field.type);
    const types = isAbstractType(type) ? schema.getPossibleTypes(type) : [type];
    return types.flatMap(({ name }) => byType.get(name) ?? []);
  };
}
