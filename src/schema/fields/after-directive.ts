import {
  DirectiveLocation,
  GraphQLDirective,
  type GraphQLScalarType,
  GraphQLSchema,
  isScalarType,
  type OperationDefinitionNode,
} from 'graphql';
import { laterToken, type PositionToken, parseToken } from '../../events/position-token.ts';
import { reasonOf } from '../../thrown.ts';
import { scalars } from '../builder/scalars.ts';
import { directiveValues } from '../contract/graphql-release.ts';
import { sentVariables } from '../contract/sent-variables.ts';
import { badInput } from '../values/canonical-input.ts';

/** `query @after(position: "1042")`: the result must include everything up to this position of the log. */
function afterDirective(position: GraphQLScalarType): GraphQLDirective {
  return new GraphQLDirective({
    name: 'after',
    description:
      'Waits, for a limited time, until the response includes everything up to this position of the event log, such as the `position` of a mutation. Null does not wait.',
    locations: [DirectiveLocation.QUERY, DirectiveLocation.SUBSCRIPTION],
    args: {
      position: { type: position, description: 'A position of a payload, a message or `_meta`. Null does not wait.' },
    },
  });
}

const standalone = afterDirective(scalars.Position);

/** Adds the directive to the schema. It is built from the schema, because a directive must use the same scalar object. */
export function withAfterDirective(schema: GraphQLSchema): GraphQLSchema {
  const config = schema.toConfig();
  const position = schema.getType('Position');
  if (!isScalarType(position)) throw new TypeError('The schema has no scalar Position.');
  return new GraphQLSchema({ ...config, directives: [...config.directives, afterDirective(position)] });
}

/**
 * Returns the position that an operation requires with `@after` or with the `header` of its request; the later one if both are set.
 *
 * @throws RefoldError `BAD_USER_INPUT` if it is not a position.
 */
export function demandedAfter(
  operation: OperationDefinitionNode | undefined,
  variables: Readonly<Record<string, unknown>> | null | undefined,
  header: string | null | undefined,
): PositionToken | null {
  const directive = operation?.directives?.length
    ? directiveValues(standalone, operation, sentVariables(operation, variables))?.position
    : undefined;
  const demands = [directive, header].filter((demand) => demand !== undefined && demand !== null).map(tokenIn);
  return demands.length === 0 ? null : demands.reduce(laterToken);
}

/** A literal is already parsed; a variable is as the client sent it. */
function tokenIn(demand: unknown): PositionToken {
  if (typeof demand === 'object' && demand !== null) return demand as PositionToken; // a literal
  try {
    return parseToken(String(demand));
  } catch (cause) {
    throw badInput(reasonOf(cause), { cause });
  }
}
