import { setTimeout as pause } from 'node:timers/promises';
import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import { Counter, type Registry } from 'prom-client';
import type { Viewer } from '../../access.ts';
import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ShadowRule } from '../../projections/projection/version-map.ts';
import { type AnswerDifference, answerDifferences, sharedDocument } from '../../schema/analysis/answer-differences.ts';
import { documentUsage } from '../../schema/analysis/document-usage.ts';
import type { LiveReadModels, OperationContext, ReadModels } from '../../schema/contract/operation-context.ts';
import type { GatewayServices, OperationReads } from './gateway-services.ts';
import type { SchemaSource, ServedSchema, ServedSchemaContext } from './served-schema.ts';

export interface ShadowOptions {
  readonly services: GatewayServices;
  readonly source: SchemaSource;
  /** Restricts reads to what a viewer may see. */
  readonly readsFor: (reads: ReadModels, viewer: Viewer | 'system') => ReadModels;
  readonly registry: Registry;
  readonly logger: Logger;
}

export interface Shadows {
  readonly plugin: Plugin;
  /** Considers a query that was answered without the executor for comparison. */
  consider(answered: Answered): void;
  /** Waits for the running comparison, and drops those that wait. */
  stop(): Promise<void>;
}

/** An operation with the versions and schema that answered it. */
export interface Answered {
  readonly served: ServedSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>> | null | undefined;
  /** The context of the pipeline, or of the transport. */
  readonly context: object;
  readonly viewer: Viewer | 'system';
}

interface Sampled extends Omit<Answered, 'served'> {
  readonly shadow: ShadowRule;
}

// Waiting operations keep the data of their requests in memory.
const maxWaiting = 20;
// One comparison at a time, followed by a pause of four times its duration: at most a fifth of one connection.
const restFactor = 4;
const shortestRest = 20;
// Two versions at the head of the log are at the same position most of the time.
const tries = 20;
const betweenTries = 50;
const maxDifferences = 5;
const longestValue = 1000;

/**
 * Compares the answers of ready versions with those of the active one. Samples some queries, and executes them again on both versions after
 * the client has its answer: in one snapshot in which both versions are at the same position, and with the access rules of the original
 * viewer.
 */
export function createShadows({ services, source, readsFor, registry, logger }: ShadowOptions): Shadows {
  const waiting: Sampled[] = [];
  const stopping = new AbortController();
  let working: Promise<void> | undefined;
  const compared = new Counter({
    name: 'refold_shadow_operations_total',
    help: 'Queries that this process executed on a ready version, too, by what became of the comparison.',
    labelNames: ['version', 'outcome'],
    registers: [registry],
  });

  function sample(sampled: Sampled): void {
    if (stopping.signal.aborted || waiting.length >= maxWaiting) return;
    waiting.push(sampled);
    working ??= work().finally(() => {
      working = undefined;
    });
  }

  async function work(): Promise<void> {
    // The client's response is sent first.
    await pause(shortestRest);
    for (let next = waiting.shift(); next && !stopping.signal.aborted; next = waiting.shift()) {
      const startedAt = performance.now();
      await compareOne(next).catch((error) =>
        logger.warn({ err: error }, `could not compare a query with a ready version. ${String(error)}`),
      );
      const rest = Math.max(shortestRest, (performance.now() - startedAt) * restFactor);
      await pause(rest, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }

  async function compareOne(sampled: Sampled): Promise<void> {
    const { name, version, startedAt } = sampled.shadow;
    if (!isRunning(sampled.shadow)) return;
    const older = source.current();
    const newer = source.pinned(new Map([[name, version]]));
    const found = await atOnePosition(older, newer, name, (reads, position) =>
      answers(sampled, older, newer, reads, position),
    );
    const { outcome, position, differences } = found ?? {
      outcome: 'skipped' as const,
      position: null,
      differences: [],
    };
    compared.inc({ version: `${name}@${version}`, outcome });
    await services.shadows?.record({
      name,
      version,
      startedAt,
      outcome,
      operation: nameOf(sampled.operation),
      position,
      differences: differences.slice(0, maxDifferences).map(({ path, older: a, newer: b }) => ({
        path,
        older: text(a),
        newer: text(b),
      })),
    });
  }

  async function atOnePosition<T>(
    older: ServedSchema,
    newer: ServedSchema,
    name: string,
    read: (reads: OperationReads, position: GlobalPosition) => Promise<T>,
  ): Promise<T | null> {
    const [a, b] = [projectionOf(older, name), projectionOf(newer, name)];
    for (let attempt = 1; a && b && attempt <= tries && !stopping.signal.aborted; attempt++) {
      const reads = services.openReadModels({ snapshot: true });
      try {
        const position = await reads.samePosition?.(a, b);
        if (position) return await read(reads, position);
      } finally {
        await reads.close();
      }
      await pause(betweenTries);
    }
    return null;
  }

  async function answers(
    sampled: Sampled,
    older: ServedSchema,
    newer: ServedSchema,
    reads: OperationReads,
    position: GlobalPosition,
  ) {
    const run = ({ schema, versions }: ServedSchema, document: DocumentNode) =>
      executed(schema, document, sampled, contextOf(sampled, versions, reads));
    const document = sharedDocument(newer.schema, sampled.document);
    if ('problem' in document) return failed(position, document.problem);
    const before = await run(older, sampled.document);
    const after = await run(newer, document);
    const differences = answerDifferences(before, after);
    return { outcome: differences.length === 0 ? ('same' as const) : ('different' as const), position, differences };
  }

  function contextOf({ context, viewer }: Sampled, versions: OperationContext['versions'], reads: OperationReads) {
    const works: OperationContext = {
      versions,
      viewer,
      readModels: readsFor(reads, viewer),
      commands: { execute: () => Promise.reject(new RefoldError('FORBIDDEN', 'A shadow query can not run commands.')) },
      live: noLive,
      after: null,
      lastEventId: null,
    };
    return { ...context, ...works };
  }

  function consider({ served, context, ...answered }: Answered): void {
    // Skip queries that a client pinned to a version of its choice; another version cannot be compared with them.
    if (served !== source.current()) return;
    for (const shadow of services.versions.shadows?.() ?? [])
      if (Math.random() * shadow.oneOf < 1 && reads(served, answered.document, answered.operation, shadow.name))
        sample({ ...answered, shadow, context: withoutResponse(context) });
  }

  const isRunning = ({ name, startedAt }: ShadowRule) =>
    (services.versions.shadows?.() ?? []).some((one) => one.name === name && one.startedAt === startedAt);

  return {
    plugin: {
      onExecute({ args }) {
        if (!services.versions.shadows?.().length) return undefined;
        return {
          onExecuteDone() {
            const context = args.contextValue as Partial<ServedSchemaContext & OperationContext>; // set by the plugins before
            const operation = getOperationAST(args.document, args.operationName);
            const { served, viewer } = context;
            const { document, variableValues: variables } = args;
            if (operation && served && viewer) consider({ served, document, operation, variables, context, viewer });
          },
        };
      },
    },
    consider,
    async stop() {
      stopping.abort();
      waiting.length = 0;
      await working;
    },
  };
}

/** Whether it is a query that reads the projection, and whose answer depends only on the position. */
function reads(
  { schema, versions }: ServedSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  name: string,
): boolean {
  const projection = versions.served.get(name)?.projection;
  if (!projection || operation.operation !== 'query') return false;
  const { type, single } = projection.graphql;
  const { paths } = documentUsage(schema, document, operation);
  const isOfItsMoment = (path: string) =>
    path === 'Query._meta' || path === `Query.${single}Events` || path.endsWith('(asOf:)');
  return paths.some((path) => path.startsWith(type)) && !paths.some(isOfItsMoment);
}

async function executed(
  schema: GraphQLSchema,
  document: DocumentNode,
  { operation, variables }: Sampled,
  contextValue: object,
): Promise<ExecutionResult> {
  return execute({
    schema,
    document,
    contextValue,
    variableValues: variables,
    operationName: operation.name?.value,
  });
}

function failed(position: GlobalPosition, problem: string) {
  const differences: readonly AnswerDifference[] = [{ path: '', older: 'valid', newer: problem }];
  return { outcome: 'failed' as const, position, differences };
}

function projectionOf({ versions }: ServedSchema, name: string): Projection | undefined {
  return versions.served.get(name)?.projection;
}

function withoutResponse(context: object): object {
  const { res: _, ...rest } = context as { res?: unknown };
  return rest;
}

function nameOf({ name, selectionSet }: OperationDefinitionNode): string {
  if (name) return name.value.slice(0, 200);
  const fields = selectionSet.selections.map((node) => (node.kind === Kind.FIELD ? node.name.value : '...'));
  return `{ ${fields.join(' ')} }`.slice(0, 200);
}

function text(value: unknown): string {
  const json = JSON.stringify(value) ?? 'nothing';
  return json.length > longestValue ? `${json.slice(0, longestValue)}…` : json;
}

const noLive: LiveReadModels = {
  row: () => refuseLive(),
  list: () => refuseLive(),
  changes: () => refuseLive(),
};

function refuseLive(): never {
  throw new RefoldError('FORBIDDEN', 'A shadow query can not subscribe.');
}
