import { setTimeout as pause } from 'node:timers/promises';
import { type DocumentNode, getOperationAST, Kind, type OperationDefinitionNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import { Counter, type Registry } from 'prom-client';
import type { Viewer } from '../../access.ts';
import { noRollout, type ShadowRule } from '../../projections/projection/version-map.ts';
import { documentUsage } from '../../schema/analysis/document-usage.ts';
import type { OperationContext, ReadModels } from '../../schema/contract/operation-context.ts';
import { reasonOf } from '../../thrown.ts';
import type { GatewayServices } from './gateway-services.ts';
import type { SchemaSource, ServedSchema, ServedSchemaContext } from './served-schema.ts';
import { compareAnswers, type SentOperation } from './shadow-comparison.ts';

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
export interface Answered extends SentOperation {
  readonly served: ServedSchema;
}

interface Sampled extends SentOperation {
  readonly shadow: ShadowRule;
}

// Waiting operations keep the data of their requests in memory.
const maxWaiting = 20;
// One comparison at a time, followed by a pause of four times its duration: at most a fifth of one connection.
const restFactor = 4;
const shortestRest = 20;
const maxDifferences = 5;
const longestValue = 1000;

/**
 * Compares the answers of ready versions with those of the active one. Samples some queries, and executes them again on both versions after
 * the client has its answer: in one snapshot in which both versions are at the same position, and with the access rules of the original
 * viewer.
 */
export function createShadows({ services, source, readsFor, registry, logger }: ShadowOptions): Shadows {
  const { rollout = noRollout } = services.versions;
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
        logger.warn({ err: error }, `could not compare a query with a ready version. ${reasonOf(error)}`),
      );
      const rest = Math.max(shortestRest, (performance.now() - startedAt) * restFactor);
      await pause(rest, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }

  async function compareOne({ shadow, ...sampled }: Sampled): Promise<void> {
    const { name, version, startedAt } = shadow;
    if (!isRunning(shadow)) return;
    const versions = { name, older: source.current(), newer: source.pinned(new Map([[name, version]])) };
    const found = await compareAnswers({ services, readsFor, signal: stopping.signal }, { ...sampled, ...versions });
    const outcome = found?.outcome ?? 'skipped';
    compared.inc({ version: `${name}@${version}`, outcome });
    await services.shadows?.record({
      name,
      version,
      startedAt,
      outcome,
      operation: nameOf(sampled.operation),
      position: found?.position ?? null,
      differences: (found?.differences ?? []).slice(0, maxDifferences).map(({ path, older, newer }) => ({
        path,
        older: text(older),
        newer: text(newer),
      })),
    });
  }

  function consider({ served, context, ...answered }: Answered): void {
    // Skip queries that a client pinned to a version of its choice; another version cannot be compared with them.
    if (served !== source.current()) return;
    for (const shadow of rollout.shadows)
      if (Math.random() * shadow.oneOf < 1 && reads(served, answered.document, answered.operation, shadow.name))
        sample({ ...answered, shadow, context: withoutResponse(context) });
  }

  const isRunning = ({ name, startedAt }: ShadowRule) =>
    rollout.shadows.some((one) => one.name === name && one.startedAt === startedAt);

  return {
    plugin: {
      onExecute({ args }) {
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
