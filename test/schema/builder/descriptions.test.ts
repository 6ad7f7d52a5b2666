import {
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isSpecifiedDirective,
  isSpecifiedScalarType,
} from 'graphql';
import { expect, test } from 'vitest';
import bank from '../../../examples/bank/app.ts';
import hotel from '../../../examples/hotel/app.ts';
import onlineRetail from '../../../examples/online-retail/app.ts';
import outboxRelay from '../../../examples/outbox-relay/app.ts';
import shop from '../../../examples/shopping-cart/app.ts';
import { newestVersions } from '../../../src/schema/analysis/newest-versions.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { ownerV1, placeV1, thingV1 } from '../../refold/things.ts';
import { allCommands, courierDayV1, parcelV1 } from '../parcels.ts';

type Described = { readonly description?: string | null | undefined };

/** The paths of all parts of a schema without a description. */
function undescribed(schema: GraphQLSchema): string[] {
  const found: string[] = [];
  const look = (path: string, { description }: Described) => {
    if (!description?.trim()) found.push(path);
  };
  for (const directive of schema.getDirectives().filter((directive) => !isSpecifiedDirective(directive))) {
    look(`@${directive.name}`, directive);
    for (const argument of directive.args) look(`@${directive.name}(${argument.name}:)`, argument);
  }
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith('__') || isSpecifiedScalarType(type)) continue;
    look(type.name, type);
    if (isEnumType(type)) for (const value of type.getValues()) look(`${type.name}.${value.name}`, value);
    if (isInputObjectType(type))
      for (const field of Object.values(type.getFields())) look(`${type.name}.${field.name}`, field);
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      look(`${type.name}.${field.name}`, field);
      for (const argument of field.args) look(`${type.name}.${field.name}(${argument.name}:)`, argument);
    }
  }
  return found;
}

const domain = (projections: Parameters<typeof newestVersions>[0], commands = allCommands.slice(0, 0)) => ({
  projections,
  commands,
});

test.each([
  ['the shop', shop],
  ['online retail', onlineRetail],
  ['the bank', bank],
  ['the hotel', hotel],
  ['the outbox', outboxRelay],
  ['parcels', domain([parcelV1, courierDayV1], allCommands)],
  ['things', domain([thingV1, ownerV1, placeV1])],
])('every type, field, argument and value in the schema of %s has a description', (_, { projections, commands }) => {
  for (const federation of [false, true]) {
    const schema = buildSchema({ versions: newestVersions(projections), commands, maxPageSize: 50, federation });
    expect(undescribed(schema)).toEqual([]);
  }
});
