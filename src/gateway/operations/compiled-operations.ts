import { type DocumentNode, type GraphQLSchema, getOperationAST, type OperationDefinitionNode } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Viewer } from '../../access.ts';
import { RefoldError } from '../../errors.ts';
import { noRollout } from '../../projections/projection/version-map.ts';
import type { ResponseQuery } from '../../projections/queries/response-query.ts';
import { type CompiledOperation, compileOperation, conditionNames } from '../../schema/compile/compile-operation.ts';
import { NotCompiled, type Variables } from '../../schema/compile/compiling.ts';
import { coerceVariables } from '../../schema/contract/graphql-release.ts';
import { checkConditions } from '../../schema/input/unset-variables.ts';
import { checkDepth } from '../../schema/values/storable-input.ts';
import { checkCost } from '../policies/cost-limit.ts';
import type { RequestPolicies } from '../policies/request-policies.ts';
import { headerOf, type TransportContext } from '../requests/transport-context.ts';
import { pinsOf } from '../rollout/pins.ts';
import { createDocumentCache } from './document-cache.ts';
import { countUsage } from './field-usage.ts';
import type { GatewayServices } from './gateway-services.ts';
import type { OperationObserver } from './observed-operations.ts';
import type { OperationRequest, Yoga } from './run-operation.ts';
import type { SchemaSource, ServedSchema } from './served-schema.ts';
import type { Shadows } from './shadow.ts';

export interface CompiledOperationsOptions {
  readonly yoga: Yoga;
  readonly source: SchemaSource;
  readonly services: GatewayServices;
  readonly policies: RequestPolicies;
  readonly observer: OperationObserver | undefined;
  /** Restricts a query to what a viewer may see. @throws RefoldError `UNAUTHENTICATED`, `FORBIDDEN` */
  readonly restrict: (query: ResponseQuery, viewer: Viewer | 'system') => ResponseQuery;
  readonly maxCost: number;
  /** Called for each answer, with the seconds since its start. */
  readonly onAnswered: (seconds: number) => void;
  /** Answered queries may be compared with the answers of ready versions. */
  readonly shadows: Pick<Shadows, 'consider'>;
  readonly logger: Logger;
}

export interface CompiledAnswer {
  /** The JSON of all root fields. */
  readonly data: string;
  readonly served: ServedSchema;
}

/**
 * Answers queries that select only generated fields with one statement each, which returns the JSON of the answer. No executor and no
 * resolvers run. Limits, authentication, access rules and metrics are those of all operations. If it cannot produce exactly the executor's
 * answer, or if anything fails, the executor handles the operation and reports the errors.
 */
export interface CompiledOperations {
  /** Returns undefined if the executor has to handle the operation. Never rejects. */
  answer(
    document: string,
    params: OperationRequest,
    transport: TransportContext,
  ): Promise<CompiledAnswer | undefined> | undefined;
}

/**
 * An operation of a valid document, with the compiled form for each combination of values of its conditions. A form that cannot be compiled
 * is undefined.
 */
interface KnownOperation {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly conditions: readonly string[];
  readonly compiled: LRUCache<string, { readonly operation: CompiledOperation | undefined; readonly revision: string }>;
}

// An operation with six conditions has 64 forms.
const maxForms = 64;

export function createCompiledOperations(options: CompiledOperationsOptions): CompiledOperations {
  const { yoga, source, services, policies, observer, restrict, maxCost, onAnswered, shadows, logger } = options;
  const { rollout = noRollout } = services.versions;
  const known = new WeakMap<GraphQLSchema, LRUCache<string, { readonly operation: KnownOperation | undefined }>>();

  function operationOf(
    schema: GraphQLSchema,
    text: string,
    name: string | null | undefined,
    transport: TransportContext,
  ): KnownOperation | undefined {
    const operations = known.get(schema) ?? createDocumentCache<{ readonly operation: KnownOperation | undefined }>();
    known.set(schema, operations);
    const key = documentKey(text, name);
    const before = operations.get(key);
    if (before) return before.operation;
    const operation = validated(yoga, text, name, transport);
    operations.set(key, { operation });
    return operation;
  }

  function compiledOf({ versions, schema }: ServedSchema, known: KnownOperation, variables: Variables) {
    const key = known.conditions.map((name) => String(variables[name])).join();
    const before = known.compiled.get(key);
    // What is active may have changed under the same schema.
    if (before?.revision === versions.revision) return before.operation;
    const operation = compiled({ ...known, schema, versions, conditions: variables });
    known.compiled.set(key, { operation, revision: versions.revision });
    return operation;
  }

  async function run(
    served: ServedSchema,
    known: KnownOperation,
    params: OperationRequest,
    transport: TransportContext,
  ): Promise<CompiledAnswer | undefined> {
    const startedAt = performance.now();
    const { document, operation } = known;
    const { schema, versions } = served;
    try {
      checkDepth(params.variables);
      checkConditions(schema, document, operation, params.variables);
      const coerced = coerceVariables(schema, operation, params.variables ?? {});
      const query = coerced && compiledOf(served, known, coerced)?.query(coerced);
      if (!query || query.reads.some(({ projection }) => services.executes?.(projection))) return undefined;
      checkCost(operation, { document, coerced: () => coerced }, schema, maxCost);
      const viewer = await policies.authenticateAndLimit(transport);
      const seen = { type: operation.operation, name: operation.name?.value };
      const work = async () => services.answer?.(restrict(query, viewer), versions);
      const data = await (observer ? observer.observe(seen, transport, work) : work());
      if (data === undefined) return undefined;
      onAnswered((performance.now() - startedAt) / 1000);
      if (services.usage) {
        const { variables } = params;
        countUsage(services.usage, transport, { ...served, document, operation, variables: variables ?? {} });
      }
      if (rollout.shadows.length > 0)
        shadows.consider({ served, document, operation, variables: params.variables, viewer, context: transport });
      return { data, served };
    } catch (error) {
      if (isForExecutor(error))
        logger.debug({ err: error }, 'query not compiled: the executor reports this error, if it gets there');
      else logger.warn({ err: error }, 'compiled query failed; fell back to the executor');
      return undefined;
    }
  }

  return {
    answer(text, params, transport) {
      if (!services.answer || headerOf(transport, 'refold-after') !== undefined) return undefined;
      if (headerOf(transport, 'refold-position') !== undefined) return undefined;
      // With a canary, the executor's path chooses the version and measures both.
      if (rollout.canaries.length > 0) return undefined;
      const served = servedTo(source, transport);
      const operation = served && operationOf(served.schema, text, params.operationName, transport);
      return served && operation && run(served, operation, params, transport);
    },
  };
}

/**
 * The cache key of a document and an operation name. Clients control both; the length of the name keeps different pairs from sharing a key.
 */
export function documentKey(text: string, name: string | null | undefined): string {
  return name == null ? ` ${text}` : `${name.length} ${name}${text}`;
}

/** Errors that the executor reports to the client itself. */
function isForExecutor(error: unknown): boolean {
  if (error instanceof NotCompiled) return true;
  if (error instanceof RefoldError) return error.code !== 'DATABASE_ERROR';
  return error instanceof Error && error.name === 'GraphQLError';
}

function servedTo(source: SchemaSource, transport: TransportContext): ServedSchema | undefined {
  try {
    return source.pinned(pinsOf(headerOf(transport, 'refold-pin')));
  } catch {
    return undefined;
  }
}

/** Parses and validates with the same limits as every document. */
function validated(
  yoga: Yoga,
  text: string,
  name: string | null | undefined,
  transport: TransportContext,
): KnownOperation | undefined {
  try {
    const { schema, parse, validate } = yoga.getEnveloped({ ...transport });
    const document: DocumentNode = parse(text);
    const operation = getOperationAST(document, name);
    if (operation?.operation !== 'query' || validate(schema, document).length > 0) return undefined;
    return { document, operation, conditions: conditionNames(document), compiled: new LRUCache({ max: maxForms }) };
  } catch {
    return undefined;
  }
}

function compiled(input: Parameters<typeof compileOperation>[0]): CompiledOperation | undefined {
  try {
    return compileOperation(input);
  } catch (error) {
    if (error instanceof NotCompiled) return undefined;
    throw error;
  }
}
