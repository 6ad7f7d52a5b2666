import SchemaBuilder from '@pothos/core';
import { GraphQLScalarType, GraphQLSchema, version } from 'graphql';
import { GraphQLJSON } from 'graphql-scalars';
import { isSupported, severalGraphqls, unsuitableGraphql } from '../../config/graphql-package.ts';

let isChecked = false;

/**
 * Refold, and the packages that it builds and serves the schema with, take `graphql` from the application. Package managers may install one that
 * does not fit, or several, if they are told to: the types of one copy are unknown to the others.
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

/** Refuses to go on with a package whose objects are not of the classes that this one imports. */
export function refuseOtherCopy(user: string, isOurs: boolean): void {
  if (!isOurs) throw severalGraphqls(version, user);
}
