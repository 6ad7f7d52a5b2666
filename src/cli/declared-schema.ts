import { printSchema } from 'graphql';
import type { Config } from '../config/define-config.ts';
import { buildSchema } from '../schema/build-schema.ts';
import type { SchemaExtension } from '../schema/extend-schema.ts';
import { newestVersions } from '../schema/newest-versions.ts';

/** The GraphQL schema of the newest declared versions, as a file holds it. */
export function declaredSchema({ projections, commands, gateway, schema }: Config): string {
  const { maxPageSize, federation } = gateway;
  const extension = schema as SchemaExtension | undefined; // made by extendSchema, says its kind
  return `${printSchema(buildSchema({ versions: newestVersions(projections), commands, maxPageSize, federation, extension }))}\n`;
}
