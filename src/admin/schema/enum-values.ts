import { type GraphQLSchema, isEnumType, isIntrospectionType } from 'graphql';

/** For each enum of the SDL, the values of the runtime by their names: `leftOut` for `LEFT_OUT`. */
export function enumValues(schema: GraphQLSchema): Record<string, Record<string, string>> {
  const enums = Object.values(schema.getTypeMap()).filter(isEnumType);
  return Object.fromEntries(
    enums
      .filter((type) => !isIntrospectionType(type))
      .map((type) => [type.name, Object.fromEntries(type.getValues().map(({ name }) => [name, internalValue(name)]))]),
  );
}

function internalValue(name: string): string {
  return name.toLowerCase().replace(/_[a-z]/g, (found) => found.slice(1).toUpperCase());
}

/** The name of a value in the SDL. */
export function enumName(value: string): string {
  return value.replace(/[A-Z]/g, '_$&').toUpperCase();
}
