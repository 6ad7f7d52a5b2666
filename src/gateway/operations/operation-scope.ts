import { type DocumentNode, type ExecutionResult, getOperationAST, type OperationDefinitionNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { Viewer } from '../../access.ts';
import type { EventMetadata } from '../../events/event.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Pins } from '../../projections/projection/version-map.ts';
import type { Guard } from '../../schema/access/guard.ts';
import { restrictLive } from '../../schema/access/restricted-live.ts';
import { restrictReads } from '../../schema/access/restricted-reads.ts';
import { needsSnapshot } from '../../schema/analysis/operation-reads.ts';
import { coerceVariables } from '../../schema/contract/graphql-release.ts';
import type { HeldRows } from '../../schema/contract/held-rows.ts';
import type {
  LiveOptions,
  LiveReadModels,
  OperationContext,
  ReadModels,
} from '../../schema/contract/operation-context.ts';
import { demandedAfter } from '../../schema/fields/after-directive.ts';
import { checkConditions } from '../../schema/input/unset-variables.ts';
import { checkDepth } from '../../schema/values/storable-input.ts';
import { writtenToken } from '../../schema/values/written-token.ts';
import { checkCost } from '../policies/cost-limit.ts';
import type { RequestPolicies } from '../policies/request-policies.ts';
import { isUnavailable } from '../requests/mask-errors.ts';
import { eventMetadata } from '../requests/request-metadata.ts';
import { headerOf, type TransportContext } from '../requests/transport-context.ts';
import { beginMutation } from '../requests/unknown-outcome.ts';
import { createWrittenFields, type WrittenFields } from '../requests/written-before.ts';
import { noteWritten } from '../requests/written-position.ts';
import { addToContext, type ContextOf } from './added-context.ts';
import { createAnswerPosition } from './answer-position.ts';
import { countUsage } from './field-usage.ts';
import type { GatewayServices, OperationReads } from './gateway-services.ts';
import { heldRowsOf, withHeldRows } from './held-answer.ts';
import type { ServedSchema, ServedSchemaContext } from './served-schema.ts';

export interface OperationScopeOptions {
  readonly services: GatewayServices;
  readonly logger: Logger;
  readonly policies: RequestPolicies;
  /** Returns the access rules for a viewer; undefined if no rule applies to it. */
  readonly guardOf: (viewer: Viewer | 'system') => Guard | undefined;
  /** Maximum number of rows that an operation may read. */
  readonly maxCost: number;
  /** Returns the function that adds to the context of the application's resolvers, if it has one. */
  readonly contextOf: () => ContextOf | undefined;
}

/** The resources of an operation, from its start to its end. */
export interface OperationScope {
  /** For queries and mutations: opens the scope when they begin to execute, and closes it when they are answered. */
  readonly plugin: Plugin;
  /** For a subscription: the caller closes the scope. Throws the error that refuses the operation. */
  open(args: ScopeArgs & { readonly contextValue: object }): Promise<Scope>;
}

interface ScopeArgs {
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
}

export interface Scope {
  /** The context of the pipeline, including what resolvers need. */
  readonly context: object;
  /** Of its version map. */
  readonly revision: string;
  /** When the viewer's credentials expire. */
  readonly expiresAt: Date | null;
  /** Rows that lack an event up to the position that a subscription demands: to be said with its next message. */
  readonly held?: HeldRows | undefined;
  close(): void;
}

interface OpenedScope extends Omit<Scope, 'context' | 'revision'> {
  readonly works: Omit<OperationContext, 'readModels'>;
  readonly written: WrittenFields;
  /**
   * Opens the reads. With `replica`, a query reads from a replica if one is close enough. Called a second time only if the first reads were
   * lost.
   */
  openReads(options?: { readonly replica: boolean }): ReadModels;
  /**
   * Whether a query must be executed again, because the replica or a table was lost during the reads. Never true for a mutation: its commands
   * must not be repeated.
   */
  lost(): boolean;
  /** Adds the position to the result if the client asked for it. */
  finish<R>(result: R): Promise<R>;
}

type Context = TransportContext & ServedSchemaContext;

export function createOperationScope(options: OperationScopeOptions): OperationScope {
  const { services, logger, policies, guardOf, maxCost } = options;

  async function open(context: Context, args: ScopeArgs): Promise<OpenedScope> {
    const operation = getOperationAST(args.document, args.operationName) ?? undefined;
    const header = (name: string) => headerOf(context, name);
    const viewer = await policies.authenticateAndLimit(context);
    checkDepth(args.variableValues);
    const demanded = demandedAfter(operation, args.variableValues, header('refold-after'));
    if (operation) {
      const { schema, pins } = context.served;
      const { document } = args;
      const variables = args.variableValues ?? {};
      const coerced = () => coerceVariables(schema, operation, variables);
      checkConditions(schema, document, operation, variables);
      checkCost(operation, { document, coerced }, schema, maxCost);
      if (services.usage) countUsage(services.usage, context, { schema, document, operation, variables, pins });
    }
    if (demanded) await checkToken(demanded);
    if (operation?.operation === 'mutation' && context.res) beginMutation(context.res);
    const guard = guardOf(viewer);
    const position = header('refold-position') === '1' ? createAnswerPosition(logger) : undefined;
    const positions = position !== undefined;
    const snapshot = positions || (operation !== undefined && wantsSnapshot(operation, args.document, context.served));
    const separate = operation?.operation === 'mutation';
    const held = demanded || separate ? heldRowsOf(header('refold-held')) : undefined;
    let opened: OperationReads | undefined;
    let isClosed = false;
    const writtenFields = createWrittenFields();
    let metadata: EventMetadata | undefined; // shared by all commands of the operation
    return {
      expiresAt: viewer === 'system' ? null : viewer.expiresAt,
      written: writtenFields,
      held,
      works: {
        versions: context.served.versions,
        viewer,
        beginField: writtenFields.begin,
        commands: {
          async execute(command, input, commandOptions) {
            await guard?.checkCommand(command, input);
            metadata ??= eventMetadata(header, viewer === 'system' ? null : viewer.id);
            const result = await services.execute(command, input, { ...commandOptions, metadata });
            const written = writtenToken(result);
            noteWritten(context, written);
            if (result.events.length > 0) writtenFields.note(written);
            for (const event of result.events) held?.written.add(event.position);
            position?.note(written);
            return result;
          },
        },
        live: liveWith(guard ? restrictLive(services.live, guard) : services.live, { pins: context.served.pins, held }),
        after: demanded?.position ?? null,
        checkToken,
        lastEventId: header('last-event-id') ?? null,
      },
      lost: () => operation?.operation === 'query' && opened?.lost === true,
      openReads({ replica } = { replica: false }) {
        if (isClosed) throw new Error('The operation has ended.');
        if (opened) closeReads(opened, logger);
        // Answers with a position are read from the primary, because the position is that of the primary's rows.
        const replicaOf =
          replica && !positions && operation?.operation === 'query' ? context.served.versions : undefined;
        opened = services.openReadModels({ snapshot, positions, separate, replicaOf, held });
        return guard ? restrictReads(opened, guard) : opened;
      },
      finish: async (result) =>
        withHeldRows(position && opened ? await position.withPosition(result, opened) : result, held),
      close() {
        isClosed = true;
        if (opened) closeReads(opened, logger);
      },
    };
  }

  /** A position without an anchor is accepted as it is. */
  async function checkToken(token: PositionToken): Promise<void> {
    if (token.anchor !== null) await services.checkToken?.(token);
  }

  return {
    plugin: {
      onExecute({ args, context, executeFn, setExecuteFn }) {
        setExecuteFn(async (given) => {
          const scope = await open(context as unknown as Context, args); // set by the schema plugin and the transport
          const run = async (readModels: ReadModels) => {
            const works: OperationContext = { ...scope.works, readModels };
            const contextValue = Object.assign(context, works);
            const contextOf = options.contextOf();
            if (contextOf) await addToContext(contextValue, contextOf);
            return executeFn({ ...given, contextValue });
          };
          try {
            const result = await run(scope.openReads({ replica: true }));
            // Once: what fails again on the primary, with the tables of now, fails for another reason.
            const finished = await scope.finish(scope.lost() ? await run(scope.openReads()) : result);
            const hasWritten = scope.written.mark((finished as ExecutionResult).errors ?? []); // the pipeline types it loosely
            return hasWritten ? finished : withOutageStatus(finished);
          } finally {
            scope.close();
          }
        });
      },
    },
    async open(args) {
      const { works, openReads, expiresAt, held, close } = await open(args.contextValue as Context, args); // as above
      const context = new SubscriptionContext(args.contextValue, works, openReads);
      try {
        const contextOf = options.contextOf();
        if (contextOf) await addToContext(context as SubscriptionContext & OperationContext, contextOf); // the works are assigned to it
      } catch (error) {
        close();
        throw error;
      }
      return { context, revision: works.versions.revision, expiresAt, held, close };
    },
  };
}

/**
 * If this process cannot answer at present and the answer has no data at all, the status is 503, which proxies understand. An answer with
 * partial data keeps
 * its status: a retry would repeat the part that succeeded. The same holds for a mutation that has written.
 */
function withOutageStatus<T>(result: T): T {
  const { data, errors = [] } = result as ExecutionResult; // the pipeline types it loosely
  if (errors.length === 0 || Object.values(data ?? {}).some((value) => value !== null)) return result;
  for (const { originalError, extensions } of errors)
    if (isUnavailable(originalError)) Object.assign(extensions, { http: { status: 503 } });
  return result;
}

/** Opens its reads on first use: most subscriptions never read, and there may be thousands of them. */
class SubscriptionContext {
  readonly #open: () => ReadModels;
  #reads: ReadModels | undefined;

  constructor(pipeline: object, works: Omit<OperationContext, 'readModels'>, openReads: () => ReadModels) {
    Object.assign(this, pipeline, works);
    this.#open = openReads;
  }

  get readModels(): ReadModels {
    this.#reads ??= this.#open();
    return this.#reads;
  }
}

function closeReads(reads: OperationReads, logger: Logger): void {
  reads.close().catch((error) => logger.warn({ err: error }, 'could not close the reads of an operation'));
}

/** Subscriptions to pinned versions stay on them. */
function liveWith(
  live: LiveReadModels,
  { pins, held }: { readonly pins: Pins; readonly held: HeldRows | undefined },
): LiveReadModels {
  if (pins.size === 0 && !held) return live;
  const given = ({ name }: Projection, options: LiveOptions) => ({ ...options, pinned: pins.has(name), held });
  return {
    row: (projection, key, columns, options) => live.row(projection, key, columns, given(projection, options)),
    list: (projection, query, options) => live.list(projection, query, given(projection, options)),
    changes: (projection, query, options) => live.changes(projection, query, given(projection, options)),
  };
}

function wantsSnapshot(operation: OperationDefinitionNode, document: DocumentNode, served: ServedSchema): boolean {
  return operation.operation !== 'subscription' && needsSnapshot(operation, document, served);
}
