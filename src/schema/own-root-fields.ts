import {
  defaultFieldResolver,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  isInterfaceType,
  isObjectType,
} from 'graphql';
import type { CommandAccess } from '../access.ts';
import { invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';
import { checkAccess } from './access/guard.ts';
import type { Root } from './builder/builder.ts';
import type { OperationContext } from './contract/operation-context.ts';
import { demandPosition } from './fields/before-read.ts';

type RootField = GraphQLField<unknown, OperationContext>;
type Resolver = GraphQLFieldResolver<unknown, OperationContext>;

/**
 * Makes the application's queries, mutations and subscriptions check who may use them, by their option `access`. `byDefault` applies to
 * fields without one.
 *
 * @throws RefoldError `INVALID_DECLARATION` if an `access` is not valid
 */
export function guardRootFields(
  schema: GraphQLSchema,
  fields: ReadonlySet<RootField>,
  byDefault: 'public' | 'authenticated',
): void {
  refuseElsewhere(schema, fields);
  for (const field of fields) {
    const access = accessOf(field, byDefault) ?? byDefault;
    const { resolve = defaultFieldResolver, subscribe } = field;
    if (subscribe) field.subscribe = guarded(field.name, access, subscribe);
    else field.resolve = guarded(field.name, access, resolve);
  }
}

/** It would protect nothing. */
function refuseElsewhere(schema: GraphQLSchema, fields: ReadonlySet<RootField>): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    for (const field of Object.values(type.getFields()))
      if (!fields.has(field) && optionOf(field) !== undefined)
        throw invalidDeclaration(
          `extendSchema, field '${field.name}'`,
          `'access' is an option of queries, mutations and subscriptions, not of fields of ${type.name}.`,
        );
  }
}

function optionOf({ extensions }: RootField): unknown {
  const options = extensions.pothosOptions as { readonly access?: unknown } | undefined; // as they were given to the builder
  return options?.access;
}

function accessOf(field: RootField, byDefault: 'public' | 'authenticated'): CommandAccess | undefined {
  const access = optionOf(field);
  if (access === undefined) return undefined;
  const subject = `extendSchema, field '${field.name}'`;
  if (access !== 'public' && access !== 'authenticated' && typeof access !== 'function') {
    const hint = typeof access === 'string' ? closest(access, ['public', 'authenticated']) : '';
    throw invalidDeclaration(subject, `'access' is 'public', 'authenticated' or a function.${hint}`);
  }
  // Nobody could use it.
  if (access !== 'public' && byDefault === 'public')
    throw invalidDeclaration(
      subject,
      "it declares 'access', but there is no authenticator. Set 'auth', such as jwt({ … }).",
    );
  return access as CommandAccess; // checked above
}

function guarded(name: string, access: CommandAccess, resolve: Resolver): Resolver {
  const messages = {
    unauthenticated: `'${name}' needs authentication. Only a field that is declared with access: 'public' is open to everybody.`,
    forbidden: `You may not use '${name}'.`,
  };
  return async (root, args, context, info) => {
    const { viewer } = context;
    if (viewer !== 'system') await checkAccess(viewer, access, () => args, messages);
    // In a payload's `query`, the root is what the command wrote.
    const { after } = (root ?? {}) as Root;
    if (after !== undefined) demandPosition(context, after);
    return resolve(root, args, context, info);
  };
}
