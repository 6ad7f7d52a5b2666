import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  visit,
} from 'graphql';
import { lengthArguments, operationCost } from '../../schema/analysis/operation-cost.ts';

interface Args {
  readonly document: DocumentNode;
  /** Returns the coerced variables; undefined if they do not fit, so the executor refuses the operation. */
  readonly coerced: () => Readonly<Record<string, unknown>> | undefined;
}

// Yoga caches parsed documents. The cost of one differs only if it depends on variables.
const known = new WeakMap<GraphQLSchema, WeakMap<OperationDefinitionNode, number>>();

/** @throws GraphQLError `QUERY_TOO_COMPLEX` if the operation may read more than `maxCost` rows */
export function checkCost(
  operation: OperationDefinitionNode,
  args: Args,
  schema: GraphQLSchema,
  maxCost: number,
): void {
  const cost = costOf(operation, args, schema);
  if (cost <= maxCost) return;
  throw new GraphQLError(
    `The operation may read ${cost} rows; the limit is ${maxCost}. Request shorter pages, or fewer nested lists.`,
    { extensions: { code: 'QUERY_TOO_COMPLEX', http: { status: 400 } } },
  );
}

function costOf(operation: OperationDefinitionNode, { document, coerced }: Args, schema: GraphQLSchema): number {
  const costs = known.get(schema) ?? new WeakMap<OperationDefinitionNode, number>();
  known.set(schema, costs);
  const before = costs.get(operation);
  if (before !== undefined) return before;
  const fragments = Object.fromEntries(
    document.definitions
      .filter((definition): definition is FragmentDefinitionNode => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
  const variables = coerced();
  if (!variables) return 0;
  const cost = operationCost({ schema, operation, fragments, variables });
  if (!lengthsVary(document)) costs.set(operation, cost);
  return cost;
}

const varying = new WeakMap<DocumentNode, boolean>();

/** Whether the length of a list depends on variables. */
function lengthsVary(document: DocumentNode): boolean {
  const before = varying.get(document);
  if (before !== undefined) return before;
  let vary = false;
  visit(document, {
    Argument({ name, value }) {
      if (lengthArguments.has(name.value) && value.kind !== Kind.INT) vary = true;
    },
  });
  varying.set(document, vary);
  return vary;
}
