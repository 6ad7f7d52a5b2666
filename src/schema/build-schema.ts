import { GraphQLSchema, isScalarType } from 'graphql';
import type { Command } from '../commands/define-command.ts';
import type { VersionMap } from '../projections/projection/version-map.ts';
import { createBuilder } from './builder/builder.ts';
import { createTypeNames } from './builder/type-names.ts';
import { checkGraphql } from './contract/check-graphql.ts';
import { applyExtension, type SchemaExtension } from './extend-schema.ts';
import { withAfterDirective } from './fields/after-directive.ts';
import { addAggregateFields } from './fields/aggregate-fields.ts';
import { addEventsField } from './fields/event-fields.ts';
import { addFederation } from './fields/federation.ts';
import { addMeta } from './fields/meta.ts';
import { addMutationField, commandPayload } from './fields/mutation-fields.ts';
import { addNodeFields } from './fields/node-fields.ts';
import { addQueryFields } from './fields/query-fields.ts';
import { addRelationFields } from './fields/relation-fields.ts';
import { addSubscriptionFields } from './fields/subscription-fields.ts';
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
}

/**
 * Builds the GraphQL schema of the versions that a process serves. Its resolvers need an `OperationContext` with the same version map.
 *
 * @throws RefoldError `INVALID_DECLARATION` if names collide, or if a command's input contains something that GraphQL cannot express;
 * `INVALID_CONFIG` if the installed `graphql` does not fit.
 */
export function buildSchema({ versions, commands, maxPageSize, federation, extension }: SchemaOptions): GraphQLSchema {
  checkGraphql();
  const builder = createBuilder();
  const names = createTypeNames();
  const served = [...versions.served.values()];
  const projections = createProjectionTypes(builder, names, served);
  const query = builder.queryType({ description: 'What can be read.' });
  addMeta(builder, served);
  addNodeFields(builder, names, projections);
  for (const types of projections) {
    addQueryFields(builder, names, types, maxPageSize);
    addAggregateFields(builder, names, types, maxPageSize);
    addEventsField(builder, names, types);
    addRelationFields(builder, types, projections, maxPageSize);
  }
  if (commands.length > 0) {
    builder.mutationType({ description: 'The commands: each decides, and writes events.' });
    const payload = commandPayload(builder, query);
    const named = createNamedInputs<InputPart>();
    for (const command of commands) addMutationField(builder, names, command, projections, payload, named);
  }
  if (projections.length > 0) builder.subscriptionType({ description: 'What can be read, and what becomes of it.' });
  for (const types of projections) addSubscriptionFields(builder, names, types, maxPageSize);
  if (extension) applyExtension(extension, builder, names, projections);
  const tellSdl = federation ? addFederation(builder, projections) : undefined;
  const schema = withoutUnusedScalars(withAfterDirective(builder.toSchema({ sortSchema: false })));
  if (extension) passRowsAsInEvolve(schema, projections);
  tellSdl?.(schema);
  return schema;
}

/** Every builder knows all scalars; the schema should contain only those that a field or an argument uses. */
function withoutUnusedScalars(schema: GraphQLSchema): GraphQLSchema {
  const config = schema.toConfig();
  return new GraphQLSchema({ ...config, types: config.types.filter((type) => !isScalarType(type)) });
}
