import { PothosError } from '@pothos/core';
import { type GraphQLSchema, validateSchema } from 'graphql';
import { invalidDeclaration, RefoldError } from '../errors.ts';
import { reasonOf } from '../thrown.ts';
import type { TypeNames } from './builder/type-names.ts';

/**
 * Builds a schema with an extension. An error of the extension, of Pothos or of GraphQL becomes one that says what to change.
 *
 * @throws RefoldError `INVALID_DECLARATION`
 */
export function buildExtended(names: TypeNames, build: () => GraphQLSchema): GraphQLSchema {
  const schema = worded(names, build);
  const [problem] = validateSchema(schema);
  if (problem) throw refusal(`the schema is not valid. ${problem.message}`, problem);
  return schema;
}

function worded(names: TypeNames, build: () => GraphQLSchema): GraphQLSchema {
  try {
    return build();
  } catch (error) {
    if (error instanceof RefoldError) throw error;
    const message = reasonOf(error);
    if (!(error instanceof PothosError)) throw refusal(`it failed: ${message}`, error);
    throw refusal(wayOut(message, names) ?? `Pothos refuses it. ${message}`, error);
  }
}

function refusal(problem: string, cause: unknown): RefoldError {
  const error = invalidDeclaration('extendSchema', problem);
  return new RefoldError(error.code, error.message, { ...error.fields }, { cause });
}

/** The messages of Pothos that a user of `extendSchema` can meet, with what to change. */
function wayOut(message: string, names: TypeNames): string | undefined {
  const type = /^Duplicate typename: Another type with name (\w+) /.exec(message)?.[1];
  if (type !== undefined) return duplicateType(type, names.ownerOf(type));
  const [, field, parent] = /^Duplicate field (\w+) on (\w+)/.exec(message) ?? [];
  if (field !== undefined && parent !== undefined)
    return duplicateField(parent, field, names.ownerOfField(parent, field));
  const missing =
    /^Missing implementations for some references \((.+)\)/.exec(message)?.[1] ??
    /^(.+) has not been implemented/.exec(message)?.[1];
  if (missing === '<unnamed ref or enum>' || message.startsWith('Received undefined as a type ref'))
    return "the 'type' of a field is undefined, or something that is no type. A circular import is the usual cause: import the ref from the file that creates it.";
  if (missing !== undefined)
    return `'${missing.replace(/\w+Ref<(\w+)>/g, '$1')}' is used, but not implemented. Call 'implement' of its ref, or define the type by that name. Create every ref inside of the function: another schema does not know it.`;
  const plugin = /^No plugin named (.+) was registered/.exec(message)?.[1];
  if (plugin !== undefined)
    return `there is no plugin '${plugin}'. Import its package. If you do, there may be two copies of @pothos/core: 'npm ls @pothos/core' shows them.`;
  return undefined;
}

function duplicateType(type: string, owner: string | undefined): string {
  if (['Query', 'Mutation', 'Subscription'].includes(type))
    return `the type '${type}' is there already. Add to it with 'builder.${type.toLowerCase()}Field' instead.`;
  if (owner === undefined) return `it defines the type '${type}' twice. Rename one of them.`;
  return `it defines the type '${type}', which belongs to ${owner} already. Rename yours.`;
}

function duplicateField(parent: string, field: string, owner: string | undefined): string {
  if (owner === undefined) return `it adds the field '${parent}.${field}', which is there already. Rename one of them.`;
  return `it adds the field '${parent}.${field}', which belongs to ${owner} already. Rename yours.`;
}
