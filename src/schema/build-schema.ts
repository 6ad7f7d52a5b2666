import { type GraphQLObjectType, GraphQLSchema, isScalarType } from 'graphql';
import type { Command } from '../commands/define-command.ts';
import type { Config } from '../config/define-config.ts';
import type { VersionMap } from '../projections/projection/version-map.ts';
import { findOwnFields } from './analysis/own-fields.ts';
import { applyExtension } from './apply-extension.ts';
import { createBuilder } from './builder/builder.ts';
import { createTypeNames } from './builder/type-names.ts';
import { checkGraphql } from './contract/check-graphql.ts';
import type { SchemaExtension } from './extend-schema.ts';
import { buildExtended } from './extension-errors.ts';
import { withAfterDirective } from './fields/after-directive.ts';
import { addAggregateFields } from './fields/aggregate-fields.ts';
import { addEventsField } from './fields/event-fields.ts';
import { addFederation } from './fields/federation.ts';
import { addMeta } from './fields/meta.ts';
import { addMutationField, commandPayload } from './fields/mutation-fields.ts';
import { announceMutationFields } from './fields/mutation-order.ts';
import { addNodeFields } from './fields/node-fields.ts';
import { addQueryFields } from './fields/query-fields.ts';
import { addRelationFields } from './fields/relation-fields.ts';
import { addSubscriptionFields } from './fields/subscription-fields.ts';
import { guardRootFields } from './own-root-fields.ts';
import { passRowsAsInEvolve } from './rows-for-computed-fields.ts';
import type { InputPart } from './types/command-input.ts';
import { createNamedInputs } from './types/named-inputs.ts';
import { createProjectionTypes } from './types/projection-types.ts';

export interface SchemaOptions {
  /** The versions that are served. */
  readonly versions: VersionMap;
  readonly commands: readonly Command[];
  /** Maximum number of rows in one page. */
  readonly maxPageSize: number;
  /** Whether the schema is a subgraph of Apollo Federation. @default false */
  readonly federation?: boolean;
  /** The application's additions to the schema. */
  readonly extension?: SchemaExtension | undefined;
  /** Whether callers are authenticated: then the application's own queries, mutations and subscriptions are not public by default. @default false */
  readonly authenticates?: boolean;
}

/**
 * Builds the GraphQL schema of the versions that a process serves. Its resolvers need an `OperationContext` with the same version map.
 *
 * @throws RefoldError `INVALID_DECLARATION` if names collide, if a command's input contains something that GraphQL cannot express, or if the
 * extension can't be built; `INVALID_CONFIG` if the installed `graphql` does not fit.
 */
export function buildSchema(options: SchemaOptions): GraphQLSchema {
  checkGraphql();
  const { versions, commands, maxPageSize, federation, extension } = options;
  const builder = createBuilder(extension);
  const names = createTypeNames();
  const served = [...versions.served.values()];
  const projections = createProjectionTypes(builder, names, served);
  const query = builder.queryType({ description: 'Reads of the read models.' });
  addMeta(builder, served);
  addNodeFields(builder, names, projections);
  for (const types of projections) {
    addQueryFields(builder, names, types, maxPageSize);
    addAggregateFields(builder, names, types, maxPageSize);
    addEventsField(builder, names, types);
    addRelationFields(builder, types, projections, maxPageSize);
  }
  if (commands.length > 0 || extension)
    builder.mutationType({ description: 'Commands. Each decides, and appends events.' });
  if (commands.length > 0) {
    const payload = commandPayload(builder, query);
    const named = createNamedInputs<InputPart>();
    for (const command of commands) addMutationField(builder, names, command, projections, payload, named);
  }
  if (projections.length > 0 || extension) builder.subscriptionType({ description: 'Live reads of the read models.' });
  for (const types of projections) addSubscriptionFields(builder, names, types, maxPageSize);

  function complete(): GraphQLSchema {
    const setSdl = federation ? addFederation(builder, projections) : undefined;
    const schema = withoutUnusedTypes(withAfterDirective(builder.toSchema({ sortSchema: false })));
    setSdl?.(schema);
    return schema;
  }

  if (!extension) return announceMutationFields(complete());
  const extended = buildExtended(names, () => {
    applyExtension(extension, { builder, names, projections, maxPageSize });
    const schema = complete();
    passRowsAsInEvolve(schema, projections);
    const declared = projections.map(({ projection }) => projection);
    const { roots } = findOwnFields(schema, names, declared);
    guardRootFields(schema, roots, options.authenticates ? 'authenticated' : 'public');
    return schema;
  });
  return announceMutationFields(extended);
}

/**
 * Every builder knows all scalars; the schema should contain only those that a field or an argument uses. With an extension, it also knows
 * mutations and subscriptions, which may be empty.
 */
function withoutUnusedTypes(schema: GraphQLSchema): GraphQLSchema {
  const config = schema.toConfig();
  const used = (root: GraphQLObjectType | null | undefined) =>
    root && Object.keys(root.getFields()).length > 0 ? root : undefined;
  const [mutation, subscription] = [used(config.mutation), used(config.subscription)];
  const unused = [config.mutation, config.subscription].filter((root) => root !== mutation && root !== subscription);
  const types = config.types.filter((type) => !isScalarType(type) && !unused.some((root) => root === type));
  return new GraphQLSchema({ ...config, mutation, subscription, types });
}

/** Returns the options of an application's schemas. */
export function schemaOptionsOf({ commands, gateway, schema, auth }: Config): Omit<SchemaOptions, 'versions'> {
  const { maxPageSize, federation } = gateway;
  const extension = schema as SchemaExtension | undefined; // `kind` says that extendSchema created it
  return { commands, maxPageSize, federation, extension, authenticates: auth !== undefined };
}
