import { setTimeout as pause } from 'node:timers/promises';
import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { Viewer } from '../../access.ts';
import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { type AnswerDifference, answerDifferences, sharedDocument } from '../../schema/analysis/answer-differences.ts';
import type { LiveReadModels, OperationContext, ReadModels } from '../../schema/contract/operation-context.ts';
import type { GatewayServices, OperationReads } from './gateway-services.ts';
import type { ServedSchema } from './served-schema.ts';

export interface ComparisonOptions {
  readonly services: Pick<GatewayServices, 'openReadModels'>;
  /** Restricts reads to what a viewer may see. */
  readonly readsFor: (reads: ReadModels, viewer: Viewer | 'system') => ReadModels;
  /** Ends the tries. */
  readonly signal: AbortSignal;
}

/** An operation that a client has sent. */
export interface SentOperation {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>> | null | undefined;
  /** The context of the pipeline, or of the transport. */
  readonly context: object;
  readonly viewer: Viewer | 'system';
}

/** A query to compare: by the schema that answered it, and by that of the ready version. */
export interface Compared extends SentOperation {
  /** The projection whose versions differ. */
  readonly name: string;
  readonly older: ServedSchema;
  readonly newer: ServedSchema;
}

export interface Comparison {
  readonly outcome: 'same' | 'different' | 'failed';
  readonly position: GlobalPosition;
  readonly differences: readonly AnswerDifference[];
}

// Two versions at the head of the log are at the same position most of the time.
const tries = 20;
const betweenTries = 50;

/**
 * Executes a query on both versions, in one snapshot in which they are at the same position, and with the access rules of the original viewer.
 * Returns null if they never were at the same position.
 */
export async function compareAnswers(options: ComparisonOptions, compared: Compared): Promise<Comparison | null> {
  const { services, signal } = options;
  const [a, b] = [projectionOf(compared.older, compared.name), projectionOf(compared.newer, compared.name)];
  for (let attempt = 1; a && b && attempt <= tries && !signal.aborted; attempt++) {
    const reads = services.openReadModels({ snapshot: true });
    try {
      const position = await reads.samePosition?.(a, b);
      if (position) return await compareAt(position, reads, options, compared);
    } finally {
      await reads.close();
    }
    await pause(betweenTries);
  }
  return null;
}

async function compareAt(
  position: GlobalPosition,
  reads: OperationReads,
  { readsFor }: ComparisonOptions,
  compared: Compared,
): Promise<Comparison> {
  const { older, newer, viewer } = compared;
  const run = ({ schema, versions }: ServedSchema, document: DocumentNode) =>
    executed(schema, document, compared, contextOf(compared, versions, readsFor(reads, viewer)));
  const document = sharedDocument(newer.schema, compared.document);
  if ('problem' in document) return failed(position, document.problem);
  const before = await run(older, compared.document);
  const after = await run(newer, document);
  const differences = answerDifferences(before, after);
  return { outcome: differences.length === 0 ? 'same' : 'different', position, differences };
}

function contextOf({ context, viewer }: Compared, versions: OperationContext['versions'], readModels: ReadModels) {
  const works: OperationContext = {
    versions,
    viewer,
    readModels,
    commands: { execute: () => Promise.reject(new RefoldError('FORBIDDEN', 'A shadow query can not run commands.')) },
    live: noLive,
    after: null,
    lastEventId: null,
  };
  return { ...context, ...works };
}

async function executed(
  schema: GraphQLSchema,
  document: DocumentNode,
  { operation, variables }: Compared,
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

function failed(position: GlobalPosition, problem: string): Comparison {
  return { outcome: 'failed', position, differences: [{ path: '', older: 'valid', newer: problem }] };
}

function projectionOf({ versions }: ServedSchema, name: string): Projection | undefined {
  return versions.served.get(name)?.projection;
}

const noLive: LiveReadModels = {
  row: () => refuseLive(),
  list: () => refuseLive(),
  changes: () => refuseLive(),
};

function refuseLive(): never {
  throw new RefoldError('FORBIDDEN', 'A shadow query can not subscribe.');
}
