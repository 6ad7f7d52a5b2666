import { type GraphQLSchema, isScalarType, isSpecifiedScalarType, printSchema } from 'graphql';
import type { Config } from '../../config/define-config.ts';
import { newestVersions } from '../../schema/analysis/newest-versions.ts';
import { buildSchema, schemaOptionsOf } from '../../schema/build-schema.ts';

/** The GraphQL schema of the newest declared versions, in the form of a file. */
export function declaredSchema(config: Config): string {
  return `${printSchema(builtSchema(config))}\n`;
}

/**
 * Returns the TypeScript type of each custom scalar of the schema as JSON, for the option `scalars` of graphql-codegen. An application's
 * own scalar sets it in its extension `codegenScalarType`, like those of graphql-scalars; the default is `unknown`.
 */
export function declaredScalars(config: Config): string {
  const scalars = Object.values(builtSchema(config).getTypeMap())
    .filter((type) => isScalarType(type) && !isSpecifiedScalarType(type))
    .map(({ name, extensions }) => [name, extensions.codegenScalarType ?? 'unknown'] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify(Object.fromEntries(scalars), null, 2)}\n`;
}

function builtSchema(config: Config): GraphQLSchema {
  return buildSchema({ ...schemaOptionsOf(config), versions: newestVersions(config.projections) });
}
