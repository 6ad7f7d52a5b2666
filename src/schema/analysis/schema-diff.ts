import {
  astFromValue,
  type GraphQLArgument,
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLInterfaceType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  isScalarType,
  isSpecifiedScalarType,
  isUnionType,
  print,
} from 'graphql';

/**
 * The effect of a schema change on clients.
 * - `breaking`: a valid document becomes invalid, or a result has a shape that its reader does not expect.
 * - `dangerous`: all documents stay valid, but some clients may get something new, such as a new enum value.
 * - `safe`: no client notices.
 */
export type Criticality = 'breaking' | 'dangerous' | 'safe';

/** One difference between two schemas. */
export interface SchemaChange {
  readonly criticality: Criticality;
  /** The changed element: `CartSummary`, `CartSummary.totalAmount`, `Query.cartSummaries(where:)`, `Status.Open`. */
  readonly path: string;
  /** Such as `CartSummary.totalAmount was removed.` */
  readonly message: string;
  /** The element that a client must use to be affected: `path`, or the element that was extended; null if unknown. */
  readonly concerns: string | null;
}

const order: readonly Criticality[] = ['breaking', 'dangerous', 'safe'];

/**
 * Returns all differences, breaking ones first. Breaking changes are those of graphql-js, with its messages. Directive definitions are not
 * compared.
 */
export function schemaDiff(older: GraphQLSchema, newer: GraphQLSchema): readonly SchemaChange[] {
  const [before, after] = [older.getTypeMap(), newer.getTypeMap()];
  const answered = enumsInAnswers(newer);
  const changes = [...differences(before, after)].flatMap(([name, a, b]): readonly SchemaChange[] => {
    if (name.startsWith('__')) return [];
    if (!b) {
      const unused = a && isSpecifiedScalarType(a);
      return unused ? [] : [change('breaking', name, `${name} was removed.`)];
    }
    if (!a) return isSpecifiedScalarType(b) ? [] : [change('safe', name, `${name} was added.`)];
    return typeChanges(a, b, answered);
  });
  return changes.toSorted((a, b) => order.indexOf(a.criticality) - order.indexOf(b.criticality));
}

function typeChanges(a: GraphQLNamedType, b: GraphQLNamedType, answered: ReadonlySet<string>): readonly SchemaChange[] {
  if (isEnumType(a) && isEnumType(b)) return enumChanges(a, b, answered.has(b.name) ? 'dangerous' : 'safe');
  if (isInputObjectType(a) && isInputObjectType(b)) return inputChanges(a, b);
  if (isObjectType(a) && isObjectType(b)) return [...fieldChanges(a, b), ...interfaceChanges(a, b)];
  if (isInterfaceType(a) && isInterfaceType(b)) return [...fieldChanges(a, b), ...interfaceChanges(a, b)];
  if (isUnionType(a) && isUnionType(b)) {
    return [...differences(byName(a.getTypes()), byName(b.getTypes()))].flatMap(([name, gone, come]) => {
      if (!come) return [change('breaking', a.name, `${name} was removed from union type ${a.name}.`)];
      return gone ? [] : [change('dangerous', a.name, `${name} was added to union type ${a.name}.`)];
    });
  }
  if (isScalarType(a) && isScalarType(b)) return [];
  return [change('breaking', a.name, `${a.name} changed from ${kindOf(a)} to ${kindOf(b)}.`, null)];
}

function enumChanges(a: GraphQLEnumType, b: GraphQLEnumType, added: Criticality): readonly SchemaChange[] {
  return [...differences(byName(a.getValues()), byName(b.getValues()))].flatMap(([name, before, after]) => {
    const path = `${a.name}.${name}`;
    if (!after) return [change('breaking', path, `${name} was removed from enum type ${a.name}.`)];
    if (!before) return [change(added, path, `${name} was added to enum type ${a.name}.`, a.name)];
    return deprecation(path, before, after);
  });
}

function inputChanges(a: GraphQLInputObjectType, b: GraphQLInputObjectType): readonly SchemaChange[] {
  return [...differences(a.getFields(), b.getFields())].flatMap(([name, before, after]) => {
    const path = `${a.name}.${name}`;
    if (!after) return [change('breaking', path, `${path} was removed.`)];
    if (!before) {
      return isRequiredInputField(after)
        ? [change('breaking', path, `A required field ${name} on input type ${a.name} was added.`, a.name)]
        : [change('safe', path, `An optional field ${name} on input type ${a.name} was added.`, a.name)];
    }
    const retyped = retype(before.type, after.type, inputStaysValid(before.type, after.type), path);
    return [...retyped, ...deprecation(path, before, after)];
  });
}

type Fielded = GraphQLObjectType | GraphQLInterfaceType;

function fieldChanges(a: Fielded, b: Fielded): readonly SchemaChange[] {
  return [...differences(a.getFields(), b.getFields())].flatMap(([name, before, after]) => {
    const path = `${a.name}.${name}`;
    if (!after) return [change('breaking', path, `${path} was removed.`)];
    if (!before) return [change('safe', path, `${path} was added.`, a.name)];
    const retyped = retype(before.type, after.type, answerStaysReadable(before.type, after.type), path);
    return [...retyped, ...argumentChanges(path, before, after), ...deprecation(path, before, after)];
  });
}

type AnyField = GraphQLField<unknown, unknown>;

function argumentChanges(field: string, a: AnyField, b: AnyField): readonly SchemaChange[] {
  return [...differences(byName(a.args), byName(b.args))].flatMap(([name, before, after]) => {
    const path = `${field}(${name}:)`;
    if (!after) return [change('breaking', path, `${field} arg ${name} was removed.`)];
    if (!before) {
      return isRequiredArgument(after)
        ? [change('breaking', path, `A required arg ${name} on ${field} was added.`, field)]
        : [change('safe', path, `An optional arg ${name} on ${field} was added.`, field)];
    }
    if (!inputStaysValid(before.type, after.type)) {
      const types = `from ${before.type} to ${after.type}`;
      return [change('breaking', path, `${field} arg ${name} has changed type ${types}.`)];
    }
    return [...defaultChange(field, path, before, after), ...deprecation(path, before, after)];
  });
}

/** A default applies if the argument is omitted, so the change affects everyone who selects the field. */
function defaultChange(
  field: string,
  path: string,
  before: GraphQLArgument,
  after: GraphQLArgument,
): readonly SchemaChange[] {
  const [a, b] = [before, after].map(({ defaultValue, type }) => {
    const literal = defaultValue === undefined ? undefined : astFromValue(defaultValue, type);
    return literal ? print(literal) : 'none';
  });
  if (a === b) return [];
  return [change('dangerous', path, `${field} arg ${before.name} has changed defaultValue from ${a} to ${b}.`, field)];
}

function interfaceChanges(a: Fielded, b: Fielded): readonly SchemaChange[] {
  return [...differences(byName(a.getInterfaces()), byName(b.getInterfaces()))].flatMap(([name, gone, come]) => {
    if (!come) return [change('breaking', a.name, `${a.name} no longer implements interface ${name}.`, name)];
    return gone ? [] : [change('dangerous', a.name, `${name} added to interfaces implemented by ${a.name}.`)];
  });
}

function retype(before: object, after: object, compatible: boolean, path: string): readonly SchemaChange[] {
  const [a, b] = [String(before), String(after)];
  if (a === b) return [];
  return [change(compatible ? 'safe' : 'breaking', path, `${path} changed type from ${a} to ${b}.`)];
}

interface Deprecable {
  readonly deprecationReason?: string | null | undefined;
}

function deprecation(path: string, before: Deprecable, after: Deprecable): readonly SchemaChange[] {
  const [a, b] = [before.deprecationReason ?? null, after.deprecationReason ?? null];
  if (a === b) return [];
  return [change('safe', path, b === null ? `${path} is no longer deprecated.` : `${path} is deprecated: ${b}`)];
}

/** Whether a reader of the older type can read the newer one: a nullable type may become non-null. */
function answerStaysReadable(a: GraphQLOutputType, b: GraphQLOutputType): boolean {
  if (isNonNullType(a)) return isNonNullType(b) && answerStaysReadable(a.ofType, b.ofType);
  if (isNonNullType(b)) return answerStaysReadable(a, b.ofType);
  if (isListType(a)) return isListType(b) && answerStaysReadable(a.ofType, b.ofType);
  return String(a) === String(b);
}

/** Whether every value of the older input type is valid for the newer one: a required type may become optional. */
function inputStaysValid(a: GraphQLInputType, b: GraphQLInputType): boolean {
  if (isNonNullType(a)) return inputStaysValid(a.ofType, isNonNullType(b) ? b.ofType : b);
  if (isNonNullType(b)) return false;
  if (isListType(a)) return isListType(b) && inputStaysValid(a.ofType, b.ofType);
  return String(a) === String(b);
}

/** Enums in results. A new value of an enum that clients only send cannot surprise them. */
function enumsInAnswers(schema: GraphQLSchema): ReadonlySet<string> {
  const types = Object.values(schema.getTypeMap()).filter((type) => isObjectType(type) || isInterfaceType(type));
  return new Set(
    types.flatMap((type) => Object.values(type.getFields()).map((field) => getNamedType(field.type).name)),
  );
}

function kindOf(type: GraphQLNamedType): string {
  if (isScalarType(type)) return 'a Scalar type';
  if (isObjectType(type)) return 'an Object type';
  if (isInterfaceType(type)) return 'an Interface type';
  if (isUnionType(type)) return 'a Union type';
  return isEnumType(type) ? 'an Enum type' : 'an Input type';
}

type Named<T> = Readonly<Record<string, T>>;

function* differences<T>(a: Named<T>, b: Named<T>): Generator<readonly [string, T | undefined, T | undefined]> {
  for (const [name, before] of Object.entries(a)) yield [name, before, Object.hasOwn(b, name) ? b[name] : undefined];
  for (const [name, after] of Object.entries(b)) if (!Object.hasOwn(a, name)) yield [name, undefined, after];
}

function byName<T extends { readonly name: string }>(things: readonly T[]): Named<T> {
  return Object.fromEntries(things.map((thing) => [thing.name, thing]));
}

function change(criticality: Criticality, path: string, message: string, concerns: string | null = path): SchemaChange {
  return { criticality, path, message, concerns };
}
