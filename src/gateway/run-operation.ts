import { type DocumentNode, type ExecutionResult, GraphQLError, getOperationAST } from 'graphql';
import type { YogaServerInstance } from 'graphql-yoga';
import type { TransportContext } from './operation-scope.ts';
import { restatedError } from './restated-error.ts';

export interface OperationRequest {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
  readonly operationName?: string | null | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
}

export type OperationResult = ExecutionResult | AsyncIterable<ExecutionResult>;

/** An operation that was parsed and validated against the schema of the moment, and can be executed. */
export interface PreparedOperation {
  readonly args: {
    readonly schema: ReturnType<Enveloped>['schema'];
    readonly document: DocumentNode;
    readonly contextValue: object;
    readonly variableValues: Readonly<Record<string, unknown>> | null | undefined;
    readonly operationName: string | null | undefined;
  };
  run(): Promise<OperationResult>;
}

// Yoga types its pipeline loosely; what goes in and out of it is typed here.
export type Yoga = YogaServerInstance<object, object>;
type Enveloped = Yoga['getEnveloped'];

/**
 * Takes an operation that did not come by HTTP through the pipeline of those that did: the same plugins, limits, caches and masks.
 * Gives errors where it is no valid operation.
 */
export async function prepareOperation(
  yoga: Yoga,
  maskError: (error: unknown) => GraphQLError,
  request: OperationRequest,
  transport: TransportContext,
): Promise<PreparedOperation | readonly GraphQLError[]> {
  const { query, variables, operationName } = request;
  try {
    const context = { ...transport, params: { query, variables, operationName } };
    const { schema, parse, validate, contextFactory, execute, subscribe } = yoga.getEnveloped(context);
    const document = parsed(parse, query);
    const problems: readonly GraphQLError[] = validate(schema, document);
    if (problems.length > 0) return problems.map((problem) => withoutHttp(maskError(problem)));
    const contextValue: object = await contextFactory();
    const args = { schema, document, contextValue, variableValues: variables, operationName };
    const isSubscription = getOperationAST(document, operationName)?.operation === 'subscription';
    const run = async () => {
      try {
        return await (isSubscription ? subscribe : execute)(args);
      } catch (error) {
        return { errors: [withoutHttp(maskError(error))] };
      }
    };
    return { args, run };
  } catch (error) {
    return [withoutHttp(maskError(error))];
  }
}

function parsed(parse: (query: string) => DocumentNode, query: string): DocumentNode {
  try {
    return parse(query);
  } catch (error) {
    if (!(error instanceof GraphQLError) || error.extensions.code !== undefined) throw error;
    throw restatedError(error, error.message, { ...error.extensions, code: 'GRAPHQL_PARSE_FAILED' });
  }
}

/** What yoga notes for HTTP on errors is no concern of other transports. */
export function withoutHttp(error: GraphQLError): GraphQLError {
  const { http, unexpected, ...extensions } = error.extensions;
  if (http === undefined && unexpected === undefined) return error;
  return restatedError(error, error.message, extensions);
}
