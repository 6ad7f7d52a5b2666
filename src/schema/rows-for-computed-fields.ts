import { type GraphQLSchema, isObjectType } from 'graphql';
import type { Row } from '../projections/columns/row-codec.ts';
import { computedFields } from './builder/computed-fields.ts';
import type { ProjectionTypes } from './types/projection-types.ts';

/** Makes resolvers of computed fields read rows as `evolve` reads them. */
export function passRowsAsInEvolve(schema: GraphQLSchema, projections: readonly ProjectionTypes[]): void {
  for (const { projection } of projections) {
    const type = schema.getType(projection.graphql.type);
    if (!isObjectType(type)) continue;
    for (const name of computedFields(projection).keys()) {
      const field = type.getFields()[name];
      const resolve = field?.resolve;
      if (field && resolve)
        field.resolve = (row, ...others) => resolve(projection.codec.forEvolve(row as Row), ...others); // the parent is a row
    }
  }
}
