import {
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isListType,
  isSpecifiedScalarType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';

/** The schema elements that an operation uses, regardless of the values of its variables. */
export interface DocumentUsage {
  /**
   * Fields (`CartSummary.totalAmount`), arguments (`Query.cartSummaries(where:)`), fields of inputs (`CartSummaryFilter.status`), enum
   * values that are sent (`Status.Open`), and named types (`CartSummaryFilter`); each once. Skipped fields are included.
   */
  readonly paths: readonly string[];
  /** Variables whose values use further elements. */
  readonly variables: readonly (readonly [name: string, type: GraphQLInputType])[];
}

const known = new WeakMap<GraphQLSchema, WeakMap<OperationDefinitionNode, DocumentUsage>>();

/** Returns the usage of a valid document. It is computed once for each schema, and cached as long as the document. */
export function documentUsage(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): DocumentUsage {
  let ofSchema = known.get(schema);
  if (!ofSchema) {
    ofSchema = new WeakMap();
    known.set(schema, ofSchema);
  }
  const remembered = ofSchema.get(operation);
  if (remembered) return remembered;
  const usage = usageOf(schema, document, operation);
  ofSchema.set(operation, usage);
  return usage;
}

/** Adds the elements in the values of variables, as `sentVariables` returns them: fields of inputs and enum values. */
export function addVariablesUsage(
  { variables }: DocumentUsage,
  values: Readonly<Record<string, unknown>>,
  paths: Set<string>,
): void {
  for (const [name, type] of variables) addValue(values[name], type, paths);
}

function usageOf(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): DocumentUsage {
  const paths = new Set<string>();
  const typeInfo = new TypeInfo(schema);
  const waiting = new Set<string>();
  const visitor = visitWithTypeInfo(typeInfo, {
    // A default counts like a sent value, if none is sent: see addVariablesUsage.
    VariableDefinition: ({ defaultValue: _, ...definition }) => definition,
    Field({ name }) {
      const parent = typeInfo.getParentType();
      if (parent && !name.value.startsWith('__')) paths.add(`${parent.name}.${name.value}`);
      const type = getNamedType(typeInfo.getType());
      // A change of the possible types affects every selection of an abstract type.
      if (isAbstractType(type)) paths.add(type.name);
    },
    Argument({ name }) {
      const [parent, field] = [typeInfo.getParentType(), typeInfo.getFieldDef()];
      // Otherwise it is an argument of a directive; directives are the same in all versions.
      if (parent && field?.args.some((argument) => argument.name === name.value))
        paths.add(`${parent.name}.${field.name}(${name.value}:)`);
    },
    ObjectField({ name }) {
      const type = typeInfo.getParentInputType();
      if (type) paths.add(`${getNamedType(type).name}.${name.value}`);
    },
    EnumValue({ value }) {
      const type = typeInfo.getInputType();
      if (type) paths.add(`${getNamedType(type).name}.${value}`);
    },
    NamedType({ name }) {
      const type = schema.getType(name.value);
      if (type && !isSpecifiedScalarType(type)) paths.add(name.value);
    },
    FragmentSpread({ name }) {
      waiting.add(name.value);
    },
  });
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  visit(operation, visitor);
  // The set grows during the iteration; iterating a set includes later entries, each once.
  for (const name of waiting) {
    const fragment = fragments.get(name);
    if (fragment) visit(fragment, visitor);
  }
  const variables = (operation.variableDefinitions ?? []).flatMap(({ variable, type: node }) => {
    const type = typeFromAST(schema, node as never) as GraphQLInputType | undefined; // the type of a variable is an input type
    return type && saysMore(type) ? [[variable.name.value, type] as const] : [];
  });
  return { paths: [...paths], variables };
}

function saysMore(type: GraphQLInputType): boolean {
  const named = getNamedType(type);
  return isInputObjectType(named) || isEnumType(named);
}

function addValue(value: unknown, type: GraphQLInputType, paths: Set<string>): void {
  const inner = getNullableType(type);
  if (value === null || value === undefined || !saysMore(inner)) return;
  if (isListType(inner)) {
    // A single value is valid as a list of one.
    for (const item of Array.isArray(value) ? value : [value]) addValue(item, inner.ofType, paths);
  } else if (isEnumType(inner)) {
    if (typeof value === 'string') paths.add(`${inner.name}.${value}`);
  } else if (isInputObjectType(inner) && typeof value === 'object') {
    const fields = inner.getFields();
    for (const [name, part] of Object.entries(value)) {
      const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (!field || part === undefined) continue;
      paths.add(`${inner.name}.${name}`);
      addValue(part, field.type, paths);
    }
  }
}
