import { type DocumentNode, type ExecutionResult, GraphQLError, type GraphQLSchema, getOperationAST } from 'graphql';
import type { YogaServerInstance } from 'graphql-yoga';
import { restatedError } from '../requests/restated-error.ts';
import type { TransportContext } from '../requests/transport-context.ts';
import type { CanaryChoice } from '../rollout/canary.ts';
import { noPins } from '../rollout/pins.ts';

export interface OperationRequest {
  readonly query?: string | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
  readonly operationName?: string | null | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
}

/** An operation that is parsed, validated against the current schema, and ready to execute. */
export interface PreparedOperation {
  readonly args: {
    readonly schema: GraphQLSchema;
    readonly document: DocumentNode;
    readonly contextValue: object;
    readonly variableValues: Readonly<Record<string, unknown>> | null | undefined;
    readonly operationName: string | null | undefined;
  };
  /** A subscription is opened instead of run. */
  readonly isSubscription: boolean;
  readonly isMutation: boolean;
  run(): Promise<ExecutionResult>;
}

// Yoga types its pipeline loosely; these types are for what goes in and out.
export type Yoga = YogaServerInstance<object, object>;

/**
 * Sends an operation that did not come by HTTP through the HTTP pipeline: the same plugins, limits, caches and error masks. Returns errors
 * if the operation is not valid. `documentFor` returns the document of a request.
 */
export async function prepareOperation(
  yoga: Yoga,
  maskError: (error: unknown) => GraphQLError,
  request: OperationRequest,
  transport: TransportContext,
  documentFor: (request: OperationRequest) => string = ({ query = '' }) => query,
  chooseCanaries: CanaryChoice = () => noPins,
): Promise<PreparedOperation | readonly GraphQLError[]> {
  const { variables, operationName } = request;
  try {
    const query = documentFor(request);
    const canaries = await chooseCanaries(transport, query);
    const context = { ...transport, canaries, params: { query, variables, operationName } };
    const { schema, parse, validate, contextFactory, execute } = yoga.getEnveloped(context);
    const document = parsed(parse, query);
    const operation = getOperationAST(document, operationName);
    if (!operation) return [unresolved()];
    const problems: readonly GraphQLError[] = validate(schema, document);
    if (problems.length > 0) return problems.map((problem) => withoutHttp(maskError(problem)));
    const contextValue: object = await contextFactory();
    const args = { schema, document, contextValue, variableValues: variables, operationName };
    const isSubscription = operation.operation === 'subscription';
    const isMutation = operation.operation === 'mutation';
    const run = async () => {
      try {
        const result: ExecutionResult = await execute(args);
        return result.errors ? { ...result, errors: result.errors.map(withoutHttp) } : result;
      } catch (error) {
        return { errors: [withoutHttp(maskError(error))] };
      }
    };
    return { args, isSubscription, isMutation, run };
  } catch (error) {
    return [withoutHttp(maskError(error))];
  }
}

/** With yoga's own message. */
function unresolved(): GraphQLError {
  const extensions = { code: 'OPERATION_RESOLUTION_FAILURE' };
  return new GraphQLError('Could not determine what operation to execute.', { extensions });
}

function parsed(parse: (query: string) => DocumentNode, query: string): DocumentNode {
  try {
    return parse(query);
  } catch (error) {
    if (!(error instanceof GraphQLError) || error.extensions.code !== undefined) throw error;
    throw restatedError(error, error.message, { ...error.extensions, code: 'GRAPHQL_PARSE_FAILED' });
  }
}

/** Removes yoga's HTTP hints from errors for other transports. */
export function withoutHttp(error: GraphQLError): GraphQLError {
  const { http, unexpected, ...extensions } = error.extensions;
  if (http === undefined && unexpected === undefined) return error;
  return restatedError(error, error.message, extensions);
}
