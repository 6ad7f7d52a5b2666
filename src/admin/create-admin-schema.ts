import { readFileSync } from 'node:fs';
import { addResolversToSchema } from '@graphql-tools/schema';
import { buildSchema, type GraphQLSchema } from 'graphql';
import { scalars } from '../schema/builder/scalars.ts';
import { resolvers } from './resolvers/resolvers.ts';
import { enumValues } from './schema/enum-values.ts';

// `docs/` is next to `src/` in the repository, and next to `dist/` in the package, which has this file of it.
const file = new URL('../../docs/admin-schema.graphql', import.meta.url);

let schema: GraphQLSchema | undefined;

/** The schema of the admin API, from its SDL. It is the same for every application. */
export function adminSchema(): GraphQLSchema {
  schema ??= withResolvers(buildSchema(readFileSync(file, 'utf8')));
  return schema;
}

function withResolvers(written: GraphQLSchema): GraphQLSchema {
  const { BigInt: integer, DateTime: time, JSON: json } = scalars;
  return addResolversToSchema({
    schema: written,
    resolvers: { BigInt: integer, DateTime: time, JSON: json, ...enumValues(written), ...resolvers },
  });
}
