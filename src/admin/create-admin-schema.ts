import { readFileSync } from 'node:fs';
import { addResolversToSchema } from '@graphql-tools/schema';
import { buildSchema, type GraphQLSchema } from 'graphql';
import { packagePath } from '../package-path.ts';
import { scalars } from '../schema/builder/scalars.ts';
import { resolvers } from './resolvers/resolvers.ts';
import { enumValues } from './schema/enum-values.ts';

let schema: GraphQLSchema | undefined;

/** The schema of the admin API, from its SDL. It is the same for every application. */
export function adminSchema(): GraphQLSchema {
  schema ??= withResolvers(buildSchema(readFileSync(packagePath('docs/admin-schema.graphql'), 'utf8')));
  return schema;
}

function withResolvers(written: GraphQLSchema): GraphQLSchema {
  const { BigInt: integer, DateTime: time, JSON: json } = scalars;
  return addResolversToSchema({
    schema: written,
    resolvers: { BigInt: integer, DateTime: time, JSON: json, ...enumValues(written), ...resolvers },
  });
}
