import { InputListRef } from '@pothos/core';
import pluralize from 'pluralize';
import { invalidDeclaration } from '../../errors.ts';
import type { AnyInput, Builder, ScalarName, Types } from '../builder/builder.ts';
import { propertyDescription, words } from '../builder/descriptions.ts';
import { isIdName } from '../builder/ids.ts';
import { scalarOf } from '../builder/json-scalars.ts';
import { definitionName, type JsonSchema, resolveReference } from '../builder/json-schema.ts';
import { pascalCase, type TypeNames } from '../builder/type-names.ts';
import { enumValues } from './column-types.ts';
import type { NamedInputs } from './named-inputs.ts';

/** The GraphQL type of a part of a command's input. */
export interface InputPart {
  readonly type: AnyInput;
  readonly nullable: boolean;
  /**
   * Converts what the client sent to what the validator expects. GraphQL does not distinguish null from absent, but validators do: null is
   * removed from properties that are optional but not nullable, and absent properties become null if they are required and nullable.
   */
  clean(value: unknown): unknown;
}

export interface CommandInput extends InputPart {
  /** Whether the client must pass the input. */
  readonly required: boolean;
}

export interface CommandInputOptions {
  readonly builder: Builder;
  readonly names: TypeNames;
  /** `defineCommand('addProductItem')` */
  readonly owner: string;
  /** `AddProductItem`: the prefix of its type names. */
  readonly prefix: string;
  /** The inputs that commands share. */
  readonly named: NamedInputs<InputPart>;
}

/**
 * Returns the input type of a command, from the JSON Schema of its validator; null if the command takes no input.
 *
 * @throws RefoldError `INVALID_DECLARATION` with the path of what GraphQL cannot express.
 */
export function commandInput(root: JsonSchema, options: CommandInputOptions): CommandInput | null {
  const context: Context = { ...options, root, references: new Map() };
  const schema = plain(root, context);
  if (schema.type !== 'object' || hasFreeKeys(schema))
    throw invalidDeclaration(options.owner, `the input is not an object; wrap it, such as { value: … }.`);
  if (Object.keys(schema.properties ?? {}).length === 0) return null;
  const name = `${options.prefix}Input`;
  const part = objectPart(schema, name, options.prefix, [], context, root);
  return { ...part, required: (schema.required ?? []).length > 0 };
}

interface Context extends CommandInputOptions {
  readonly root: JsonSchema;
  /** Object types that are created or in progress. So a type may contain itself. */
  readonly references: Map<JsonSchema, InputPart>;
}

type Path = readonly string[];

function partOf(given: JsonSchema, path: Path, prefix: string, context: Context): InputPart {
  const { schema, nullable, name } = withoutNull(given, context);
  const part =
    name === undefined ? presentPart(schema, path, prefix, context) : namedPart(schema, name, path, prefix, context);
  return nullable ? { ...part, nullable: true, clean: (value) => (value === null ? null : part.clean(value)) } : part;
}

/** A definition with a name becomes one type for all places and commands that use it. */
function namedPart(schema: JsonSchema, name: string, path: Path, prefix: string, context: Context): InputPart {
  const isObject = schema.type === 'object' && !hasFreeKeys(schema);
  if (!isObject && !schema.enum) return presentPart(schema, path, prefix, context, isIdName(name));
  const own = pascalCase(name).replace(/Input$/, '');
  const make = () =>
    isObject
      ? objectPart(schema, `${own}Input`, own, path, context, schema)
      : enumPart(schema.enum ?? [], [...path, ''], own, context);
  // A recursive definition is known before its type is complete.
  return context.references.get(schema) ?? context.named.use(name, schema, context, make);
}

function presentPart(schema: JsonSchema, path: Path, prefix: string, context: Context, isId = false): InputPart {
  const values = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  if (values) return enumPart(values, path, prefix, context);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choicePart(choices, path, context);
  const scalar = scalarOf(schema);
  if (scalar) return scalarPart(scalar === 'String' && (isId || isIdName(path.at(-1) ?? '')) ? 'ID' : scalar);
  switch (schema.type) {
    case 'array':
      return listPart(schema, path, prefix, context);
    case 'object': {
      if (hasFreeKeys(schema)) return scalarPart('JSON');
      const words = path.slice(-1).map((name) => pascalCase(name));
      const own = `${prefix}${words.join('')}`;
      return objectPart(schema, `${own}Input`, own, path, context, schema);
    }
    case undefined:
      return anything;
    default:
      throw inexpressible(context, path, `a value of type ${JSON.stringify(schema.type)}`);
  }
}

function objectPart(
  schema: JsonSchema,
  name: string,
  prefix: string,
  path: Path,
  context: Context,
  identity: JsonSchema,
): InputPart {
  const known = context.references.get(identity);
  if (known) return known;
  const { builder, names, owner } = context;
  const ref = builder.inputRef<Record<string, unknown>>(names.claim(name, owner));
  const parts = new Map<string, InputPart>();
  const made: InputPart = { type: ref, nullable: false, clean: (value) => cleanObject(value, parts, required) };
  context.references.set(identity, made);
  const required = new Set(schema.required ?? []);
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0) return { ...made, type: 'JSON' };
  for (const [property, propertySchema] of properties) {
    if (!/^[_A-Za-z][_0-9A-Za-z]*$/.test(property) || property.startsWith('__'))
      throw inexpressible(context, [...path, property], 'a property with this name');
    parts.set(property, partOf(propertySchema, [...path, property], prefix, context));
  }
  ref.implement({
    description:
      schema.description ??
      (path.length === 0 ? `The input of ${quoted(prefix)}.` : `${words(prefix)}, as input of a command.`),
    fields: (t) =>
      Object.fromEntries(
        properties.map(([property, given]) => {
          const { type, nullable } = parts.get(property) as InputPart; // set above
          const isRequired = required.has(property) && !nullable;
          const { description, deprecated } = given;
          const present = withoutNull(given, context).schema;
          return [
            property,
            t.field({
              type,
              required: isRequired,
              description: description ?? present.description ?? propertyDescription(property, present),
              // GraphQL does not allow deprecating required input fields.
              ...(deprecated && !isRequired ? { deprecationReason: 'Deprecated.' } : {}),
            }),
          ];
        }),
      ) as never, // the fields are only known at run time
  });
  return made;
}

function cleanObject(value: unknown, parts: ReadonlyMap<string, InputPart>, required: ReadonlySet<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const missing = [...required].filter((name) => parts.get(name)?.nullable && !Object.hasOwn(value, name));
  return Object.fromEntries(
    [...Object.entries(value), ...missing.map((name) => [name, null] as const)].flatMap(([name, given]) => {
      const part = parts.get(name);
      if (!part) return [[name, given]];
      return given === null && !part.nullable && !required.has(name) ? [] : [[name, part.clean(given)]];
    }),
  );
}

function listPart(schema: JsonSchema, path: Path, prefix: string, context: Context): InputPart {
  if (schema.prefixItems) throw inexpressible(context, path, 'a tuple; use an object');
  if (typeof schema.items !== 'object') return listOf(anything);
  const name = path.at(-1);
  return listOf(
    partOf(schema.items, name === undefined ? path : [...path.slice(0, -1), pluralize.singular(name)], prefix, context),
  );
}

function listOf(item: InputPart): InputPart {
  return {
    type: new InputListRef<Types, unknown>(item.type, !item.nullable),
    nullable: false,
    clean: (value) => (Array.isArray(value) ? value.map((entry) => item.clean(entry)) : value),
  };
}

function enumPart(values: readonly unknown[], path: Path, prefix: string, context: Context): InputPart {
  const texts = values.filter((value) => typeof value === 'string');
  if (texts.length === values.length && texts.every(isEnumValue)) {
    const { builder, names, owner } = context;
    const name = names.claim(`${prefix}${pascalCase(path.at(-1) ?? 'value')}`, `${owner}, input '${path.join('.')}'`);
    const property = path.at(-1) || name;
    const type = builder.enumType(name, {
      description: `The values of \`${property}\` in the input of commands.`,
      values: enumValues(property, texts),
    });
    return { type, nullable: false, clean: same };
  }
  // Values that are not valid GraphQL names keep their scalar type; the validator checks them.
  if (texts.length === values.length) return scalarPart('String');
  if (values.every((value) => typeof value === 'boolean')) return scalarPart('Boolean');
  if (values.every((value) => Number.isInteger(value))) return scalarPart('Int');
  if (values.every((value) => typeof value === 'number')) return scalarPart('Float');
  throw inexpressible(context, path, 'values of several types');
}

/** GraphQL has no input unions. A choice between values of one scalar becomes that scalar; the validator distinguishes them. */
function choicePart(choices: readonly JsonSchema[], path: Path, context: Context): InputPart {
  const schemas = choices.map((choice) => plain(choice, context));
  // If one choice is an object with any keys, the whole choice is JSON.
  if (schemas.some((schema) => schema.type === 'object' && hasFreeKeys(schema))) return scalarPart('JSON');
  const scalars = schemas.map((schema) => {
    const scalar = scalarOf(schema);
    if (scalar) return scalar;
    throw inexpressible(context, path, 'a choice between objects or lists; make one optional property of each');
  });
  const among = (...names: ScalarName[]) => scalars.every((scalar) => names.includes(scalar));
  const [first] = scalars;
  if (first && among(first)) return scalarPart(first);
  if (among('String', 'DateTime', 'Date', 'UUID')) return scalarPart('String');
  if (among('Int', 'SafeInt')) return scalarPart('SafeInt');
  if (among('Int', 'SafeInt', 'Float')) return scalarPart('Float');
  throw inexpressible(context, path, `a choice between ${[...new Set(scalars)].join(' and ')}`);
}

/** Resolves references and merges intersections. */
function plain(schema: JsonSchema, context: Context): JsonSchema {
  if (schema.$ref !== undefined) {
    const target = resolveReference(context.root, schema.$ref);
    if (!target) throw inexpressible(context, [], `a reference '${schema.$ref}' to something outside`);
    return plain(target, context);
  }
  if (!schema.allOf) return schema;
  const { allOf, ...own } = schema;
  const parts = [own, ...allOf.map((part) => plain(part, context))];
  return Object.assign({}, ...parts, {
    properties: Object.assign({}, ...parts.map((part) => part.properties)),
    required: parts.flatMap((part) => part.required ?? []),
  });
}

interface Present {
  readonly schema: JsonSchema;
  readonly nullable: boolean;
  /** The name given in the declaration. */
  readonly name: string | undefined;
}

function withoutNull(given: JsonSchema, context: Context): Present {
  const name = definitionName(given);
  const schema = plain(given, context);
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== 'null');
    const nullable = types.length < schema.type.length;
    const [only] = types;
    return { schema: { ...schema, type: types.length === 1 && only !== undefined ? only : types }, nullable, name };
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (!choices) return { schema, nullable: false, name };
  const present = choices.filter((choice) => plain(choice, context).type !== 'null');
  const { anyOf, oneOf, ...own } = schema;
  const nullable = present.length < choices.length;
  const [only] = present;
  if (!only || present.length > 1) return { schema: { ...own, anyOf: present }, nullable, name };
  const definition = plain(only, context);
  // Keywords beside a reference describe the property; the type comes from the definition.
  if (only.$ref !== undefined) return { schema: definition, nullable, name: definitionName(only) };
  return { schema: Object.keys(own).length === 0 ? definition : { ...definition, ...own }, nullable, name };
}

function hasFreeKeys(schema: JsonSchema): boolean {
  const { additionalProperties, properties = {} } = schema;
  return typeof additionalProperties === 'object' && Object.keys(properties).length === 0;
}

const scalarPart = (type: ScalarName): InputPart => ({ type, nullable: false, clean: same });
const same = (value: unknown) => value;
const anything: InputPart = { ...scalarPart('JSON'), nullable: true };

function isEnumValue(value: string): boolean {
  return /^[_A-Za-z][_0-9A-Za-z]*$/.test(value) && !/^(true|false|null|__.*)$/.test(value);
}

function inexpressible({ owner }: Context, path: Path, what: string) {
  return invalidDeclaration(owner, `GraphQL can't express '${path.join('.') || 'input'}': it is ${what}.`);
}

/** `AddProductItem` → `addProductItem`, the name of the mutation. */
function quoted(prefix: string): string {
  return `\`${prefix.charAt(0).toLowerCase()}${prefix.slice(1)}\``;
}
