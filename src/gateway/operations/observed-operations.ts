import { type DocumentNode, type ExecutionResult, GraphQLError, getOperationAST } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import { continuedTrace, isTracing, traced } from '../../tracing.ts';
import { headerOf, type TransportContext } from '../requests/transport-context.ts';
import { writtenPosition } from '../requests/written-position.ts';
import { clientOf } from './field-usage.ts';

export interface ObservedOperation {
  readonly type: string;
  readonly name: string | undefined;
}

/** Traces operations, and writes the request log. Every operation passes here, whichever transport it came by and whoever answers it. */
export interface OperationObserver {
  /** Observes what the executor answers, and documents that are refused. */
  readonly plugin: Plugin;
  /** Observes one operation. Its result has its errors, if it has any. */
  observe<R>(operation: ObservedOperation, transport: TransportContext, work: () => Promise<R>): Promise<R>;
  /** Logs an operation that is refused before its document is read. */
  refused(transport: TransportContext, error: unknown): void;
}

export interface OperationObserverOptions {
  /** Receives one line for each operation. @default no lines are written */
  readonly requestLog: Logger | undefined;
}

type Outcome = Pick<ExecutionResult, 'errors' | 'extensions'>;

/** Undefined if nothing is to be observed. */
export function createOperationObserver({ requestLog }: OperationObserverOptions): OperationObserver | undefined {
  if (!requestLog && !isTracing) return undefined;
  // An operation may fail more than once: when it is authenticated, in the compiler and in the executor.
  const logged = new WeakSet<object>();

  function write(
    { type, name }: Partial<ObservedOperation>,
    transport: TransportContext,
    { startedAt, outcome, position }: { startedAt: number; outcome: string; position?: string | undefined },
  ): void {
    if (!requestLog) return;
    const key = transport.message ?? transport.req ?? transport.request;
    if (key !== undefined && logged.has(key)) return;
    if (key !== undefined) logged.add(key);
    const { name: client, version } = clientOf(transport);
    const durationMs = Math.round((performance.now() - startedAt) * 100) / 100;
    const fields = {
      operation: name,
      type,
      client: version === '' ? client : `${client}@${version}`,
      durationMs,
      outcome,
      position,
    };
    requestLog.info(
      fields,
      `${type ?? 'operation'}${name === undefined ? '' : ` ${name}`}: ${outcome}, ${durationMs} ms`,
    );
  }

  function refused(transport: TransportContext, error: unknown, operation: Partial<ObservedOperation> = {}): void {
    write(operation, transport, { startedAt: performance.now(), outcome: codeOf(error) });
  }

  async function observe<R>(
    operation: ObservedOperation,
    transport: TransportContext,
    work: () => Promise<R>,
  ): Promise<R> {
    const startedAt = performance.now();
    const { type, name } = operation;
    const within = continuedTrace(headerOf(transport, 'traceparent'));
    const attributes = { 'graphql.operation.type': type, 'graphql.operation.name': name };
    return traced(type, { kind: 'server', attributes, within }, async (span) => {
      try {
        const result = await work();
        if (result === undefined) return result; // somebody else has to answer it
        const { errors, extensions } = result as Outcome; // what is not a result of GraphQL has neither
        const outcome = errors?.[0] ? codeOf(errors[0]) : 'ok';
        if (outcome !== 'ok') span.fail(outcome);
        const position = writtenPosition(transport) ?? positionIn(extensions);
        write(operation, transport, { startedAt, outcome, position });
        return result;
      } catch (error) {
        write(operation, transport, { startedAt, outcome: codeOf(error) });
        throw error;
      }
    });
  }

  const plugin: Plugin<TransportContext> = {
    onParse({ context }) {
      if (!requestLog) return undefined;
      return ({ result }) => {
        if (result instanceof Error) refused(context, result);
      };
    },
    onValidate({ params: { documentAST }, context }) {
      if (!requestLog) return undefined;
      return ({ valid, result }) => {
        if (!valid) refused(context, result[0], observed(documentAST, undefined));
      };
    },
    onExecute({ args, context, executeFn, setExecuteFn }) {
      const operation = observed(args.document, args.operationName);
      setExecuteFn((given) => observe(operation, context, async () => executeFn(given as typeof args))); // the pipeline's own arguments
    },
  };
  return { plugin: plugin as Plugin, observe, refused };
}

/** What a document executes. */
export function observed(document: DocumentNode, operationName: string | null | undefined): ObservedOperation {
  const operation = getOperationAST(document, operationName);
  return { type: operation?.operation ?? 'query', name: operation?.name?.value };
}

/** The code that clients get, before the error is masked. */
function codeOf(error: unknown): string {
  const cause = error instanceof GraphQLError ? (error.originalError ?? error) : error;
  if (cause instanceof RefoldError) return cause.code;
  const { code } = error instanceof GraphQLError ? error.extensions : {};
  if (typeof code === 'string') return code;
  return error instanceof GraphQLError && !error.originalError ? 'BAD_USER_INPUT' : 'INTERNAL_SERVER_ERROR';
}

function positionIn(extensions: ExecutionResult['extensions']): string | undefined {
  const position = extensions?.position;
  return typeof position === 'string' ? position : undefined;
}
