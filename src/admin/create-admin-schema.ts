import { type GraphQLSchema, printSchema } from 'graphql';
import { builder } from './types/builder.ts';
// These files add the root fields.
import './fields/overview-queries.ts';
import './fields/letter-queries.ts';
import './fields/log-queries.ts';
import './fields/client-queries.ts';
import './fields/run-action.ts';
import './fields/subscriptions.ts';

let schema: GraphQLSchema | undefined;

/** The schema of the admin API. It is the same for every application. */
export function adminSchema(): GraphQLSchema {
  schema ??= builder.toSchema({ sortSchema: false });
  return schema;
}

/** The schema as text, for docs/admin-schema.graphql. */
export function adminSchemaText(): string {
  return `${printSchema(adminSchema())}\n`;
}
