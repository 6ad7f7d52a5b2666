import {
  type FieldNode,
  type GraphQLField,
  type GraphQLObjectType,
  getNamedType,
  isObjectType,
  Kind,
  type ValueNode,
} from 'graphql';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ServedVersion, VersionMap } from '../../projections/projection/version-map.ts';
import { relatedFilters } from '../../projections/queries/filter-columns.ts';
import type { ConstantPart, Members, ResponseRead } from '../../projections/queries/response-query.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import { type FieldMetadata, isWrapped, metadataOf } from '../builder/field-metadata.ts';
import { argumentValues } from '../contract/graphql-release.ts';
import { type Compiling, NotCompiled, type Variables } from './compiling.ts';

export type Selected = ReadonlyMap<string, readonly FieldNode[]>;
type AnyField = GraphQLField<unknown, unknown>;

/** A selected field with its selection set. */
export interface Selection {
  readonly metadata: FieldMetadata;
  readonly nodes: readonly FieldNode[];
  readonly node: FieldNode;
  readonly field: AnyField;
}

export function membersOf<Part>(
  selected: Selected,
  type: GraphQLObjectType,
  compile: (selection: Selection) => Part,
): Members<Part | ConstantPart> {
  return [...selected].map(([key, nodes]) => {
    const [node] = nodes as [FieldNode]; // at least one
    const name = node.name.value;
    if (name === '__typename') return [key, { kind: 'constant', json: JSON.stringify(type.name) }];
    const field = type.getFields()[name];
    const metadata = field && metadataOf(field);
    if (!field || !metadata || isWrapped(field)) throw new NotCompiled(`'${name}' of ${type.name} is resolved.`);
    return [key, compile({ metadata, nodes, node, field })];
  });
}

/** Returns a function from variables to the field's arguments; arguments without variables are evaluated once. */
export function argumentsOf({ field, node }: Selection): (variables: Variables) => Variables {
  if (varies(node)) return (variables) => argumentValues(field, node, variables);
  const fixed = argumentValues(field, node);
  return () => fixed;
}

/** Returns the arguments that determine the statement of a field; they cannot be variables. */
export function fixedArguments({ field, node }: Selection): Variables {
  if (varies(node)) throw new NotCompiled(`An argument of '${field.name}' is a variable.`);
  return argumentValues(field, node);
}

function varies(node: FieldNode): boolean {
  return (node.arguments ?? []).some(({ value }) => hasVariable(value));
}

function hasVariable(value: ValueNode): boolean {
  if (value.kind === Kind.VARIABLE) return true;
  if (value.kind === Kind.LIST) return value.values.some(hasVariable);
  return value.kind === Kind.OBJECT && value.fields.some((member) => hasVariable(member.value));
}

export function addRead(compiling: Compiling, read: (variables: Variables) => ResponseRead): number {
  return compiling.reads.push(read) - 1;
}

/** By the operation's own map: a schema outlives maps that differ only in what is active. */
export function activeOf({ projection }: ServedVersion, versions: VersionMap): Projection {
  if (!versions.served.get(projection.name)?.active) throw new NotCompiled(`${projection.id} is not active.`);
  return projection;
}

export function refuseInactive(filter: RowFilter | null, versions: VersionMap): void {
  for (const { target, filter: inner } of relatedFilters(filter)) {
    if (!versions.served.get(target.projection.name)?.active)
      throw new NotCompiled(`${target.projection.id} is not active.`);
    refuseInactive(inner, versions);
  }
}

export function refuseArguments({ node }: Selection, known: readonly string[]): void {
  const other = (node.arguments ?? []).find(({ name }) => !known.includes(name.value));
  if (other) throw new NotCompiled(`'${node.name.value}' has the argument '${other.name.value}'.`);
}

export function withoutArguments(selection: Selection): Selection {
  refuseArguments(selection, []);
  return selection;
}

export function objectOf(field: AnyField): GraphQLObjectType {
  const type = getNamedType(field.type);
  if (isObjectType(type)) return type;
  throw new NotCompiled(`'${field.name}' is not of an object type.`);
}

export function notOf({ field }: Selection): NotCompiled {
  return new NotCompiled(`'${field.name}' is resolved.`);
}
