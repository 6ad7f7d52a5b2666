import SchemaBuilder from '@pothos/core';
import { GraphQLScalarType, GraphQLSchema, version } from 'graphql';
import { GraphQLJSON } from 'graphql-scalars';
import { isSupported, severalGraphqls, unsuitableGraphql } from '../../config/graphql-package.ts';

let isChecked = false;

/**
 * Refold and its GraphQL packages use the application's copy of `graphql`. A package manager may install one that does not fit, or several
 * copies; types of one copy are unknown to the others.
 *
 * @throws RefoldError `INVALID_CONFIG`
 */
export function checkGraphql(): void {
  if (isChecked) return;
  if (!isSupported(version)) throw unsuitableGraphql(version);
  refuseOtherCopy('graphql-scalars', GraphQLJSON instanceof GraphQLScalarType);
  const builder = new SchemaBuilder({});
  builder.queryType({ fields: (field) => ({ any: field.int({ resolve: () => 1 }) }) });
  refuseOtherCopy('@pothos/core', builder.toSchema() instanceof GraphQLSchema);
  isChecked = true;
}

/** Refuses a package whose objects are not instances of the classes imported here. */
export function refuseOtherCopy(user: string, isOurs: boolean): void {
  if (!isOurs) throw severalGraphqls(version, user);
}
