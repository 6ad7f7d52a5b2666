import {
  type DocumentNode,
  type ExecutionResult,
  GraphQLError,
  getOperationAST,
  type OperationDefinitionNode,
} from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { EventMetadata } from '../events/event.ts';
import type { VersionMap } from '../projections/version-map.ts';
import { demandedAfter } from '../schema/after-directive.ts';
import type { OperationContext } from '../schema/operation-context.ts';
import { needsSnapshot } from '../schema/operation-reads.ts';
import { endingStream } from './ending-stream.ts';
import type { GatewayServices, OperationReadModels } from './gateway-services.ts';
import { eventMetadata } from './request-metadata.ts';
import type { ServedSchemaContext } from './served-schema.ts';

/** What a transport leaves in an operation's context; nothing where the operation comes from this process. */
export interface TransportContext {
  /** Of an HTTP request. */
  readonly request?: { readonly headers: { get(name: string): string | null } };
  /** Of the request that opened a WebSocket. */
  readonly socketHeaders?: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Opens what the resolvers of an operation work with when it begins to execute, and closes it when it is answered. */
export function useOperationScope(services: GatewayServices, logger: Logger): Plugin {
  type Context = TransportContext & ServedSchemaContext;
  interface Args {
    readonly document: DocumentNode;
    readonly operationName?: string | null | undefined;
    readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
  }

  function open(context: Context, args: Args): OperationContext & { readonly readModels: OperationReadModels } {
    const operation = getOperationAST(args.document, args.operationName) ?? undefined;
    const header = (name: string) => headerOf(context, name);
    let metadata: EventMetadata | undefined; // one for all commands of the operation
    const after = demandedAfter(operation, args.variableValues, header('refold-after'));
    return {
      versions: context.served.versions,
      readModels: services.openReadModels({
        snapshot: operation !== undefined && wantsSnapshot(operation, args.document, context.served.versions),
      }),
      commands: {
        execute(command, input, commandOptions) {
          metadata ??= eventMetadata(header);
          return services.execute(command, input, { ...commandOptions, metadata });
        },
      },
      live: services.live,
      after,
    };
  }

  const close = (readModels: OperationReadModels) =>
    void readModels.close().catch((error) => logger.warn({ err: error }, 'the reads of an operation did not close'));

  return {
    onExecute({ args, context, executeFn, setExecuteFn }) {
      setExecuteFn(async (given) => {
        const scope = open(context as unknown as Context, args); // left there by the schema's plugin and the transport
        try {
          return await executeFn({ ...given, contextValue: Object.assign(context, scope) });
        } finally {
          close(scope.readModels);
        }
      });
    },
    onSubscribe({ args, context, subscribeFn, setSubscribeFn }) {
      setSubscribeFn(async (given) => {
        const scope = open(context as unknown as Context, args); // as above
        let result: AsyncIterable<ExecutionResult> | ExecutionResult | undefined;
        try {
          result = await subscribeFn({ ...given, contextValue: Object.assign(context, scope) });
        } finally {
          if (!isAsyncIterable(result)) close(scope.readModels);
        }
        if (!isAsyncIterable(result)) return result;
        return endingStream(result, { onEnd: () => close(scope.readModels), lastWord: failed }).stream;
      });
    },
  };
}

/** Clients get an error as the last answer of the subscription; thrown, it would take down the whole socket. */
function failed(error: unknown): ExecutionResult {
  if (error instanceof GraphQLError) return { errors: [error] };
  const cause = error instanceof Error ? error : new Error(String(error));
  return { errors: [new GraphQLError(cause.message, { originalError: cause })] };
}

function wantsSnapshot(operation: OperationDefinitionNode, document: DocumentNode, versions: VersionMap): boolean {
  return operation.operation !== 'subscription' && needsSnapshot(operation, document, versions);
}

function headerOf({ request, socketHeaders }: TransportContext, name: string): string | undefined {
  if (request) return request.headers.get(name) ?? undefined;
  const value = socketHeaders?.[name];
  return typeof value === 'string' ? value : undefined;
}
