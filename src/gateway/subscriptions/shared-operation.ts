import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
} from 'graphql';
import { eventIdOf } from '../../schema/contract/change-feed.ts';
import { beginSpan, isTracing, type OpenSpan, type Trace } from '../../tracing.ts';
import { type Answer, createAnswer } from './answer.ts';

export interface OperationArgs {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  /** Of the version map: one schema may serve several, which differ in what is active. */
  readonly revision?: string;
  /** Whether each answer has the position of its message in `extensions`. @default false */
  readonly positions?: boolean;
  readonly operationName?: string | null | undefined;
  readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
}

/** One operation, independent of its sender: the same schema, document and variables. */
export interface SharedOperation extends OperationArgs {
  readonly id: string;
  subscribers: number;
}

/** The operations with subscribers. */
export interface SharedOperations {
  join(args: OperationArgs): SharedOperation;
  leave(operation: SharedOperation): void;
}

export function createSharedOperations(): SharedOperations {
  // Yoga caches parsed documents by text, so the same object comes again.
  const known = new WeakMap<GraphQLSchema, WeakMap<DocumentNode, Map<string, SharedOperation>>>();

  function operationsOf({ schema, document }: OperationArgs): Map<string, SharedOperation> {
    const ofSchema = known.get(schema) ?? new WeakMap<DocumentNode, Map<string, SharedOperation>>();
    known.set(schema, ofSchema);
    const ofDocument = ofSchema.get(document) ?? new Map<string, SharedOperation>();
    ofSchema.set(document, ofDocument);
    return ofDocument;
  }

  return {
    join(args) {
      const { schema, document, revision, operationName, variableValues, positions = false } = args;
      const operations = operationsOf(args);
      const id = JSON.stringify([positions, revision ?? null, operationName ?? null, variableValues ?? {}]);
      const operation = operations.get(id) ?? {
        ...{ id, subscribers: 0, schema, document, positions },
        ...{ operationName: operationName ?? null, variableValues: variableValues ?? {} },
      };
      operations.set(id, operation);
      operation.subscribers++;
      return operation;
    },
    leave(operation) {
      if (--operation.subscribers === 0) operationsOf(operation).delete(operation.id);
    },
  };
}

/**
 * Computes answers to events. Each is computed once for all subscribers with the same operation and the same event. Access rules decide
 * which events a viewer gets, so sharing is safe. If a resolver reads the context of the operation (only an application's own resolvers
 * can), the answer is not shared.
 */
export interface Responses {
  /** `trace`: what has caused the event. */
  answer(operation: SharedOperation, event: unknown, context: object, trace?: Trace): Answer | Promise<Answer>;
  /** The last answer of a subscription that failed. */
  failed(error: unknown): Answer;
  /** Clears the cache, after all subscribers to the current events have their answers. */
  forget(): void;
}

interface Made {
  readonly answer: Answer | Promise<Answer>;
  readonly context: object;
  /** Whether a resolver has read the context; known when the answer is complete. */
  readonly looks: { readonly personal: boolean };
  /** Ends when all subscribers have their answers. */
  readonly span: OpenSpan | undefined;
  subscribers: number;
}

export function createResponses(maskError: (error: unknown) => GraphQLError): Responses {
  let made = new Map<unknown, Map<SharedOperation, Made>>();

  function make(operation: SharedOperation, event: unknown, context: object, trace: Trace | undefined): Made {
    const span = trace && beginSpan('push', { kind: 'producer', within: trace, attributes: attributesOf(operation) });
    const looks = { personal: false };
    const watched = watch(context, () => {
      looks.personal = true;
    });
    const answer = () => run(operation, event, watched);
    return { looks, context, span, subscribers: 0, answer: span ? span.run(answer) : answer() };
  }

  function run(operation: SharedOperation, rootValue: unknown, contextValue: object): Answer | Promise<Answer> {
    const { schema, document, operationName, variableValues, positions } = operation;
    const positioned = (executed: ExecutionResult) => (positions ? withPosition(executed, rootValue) : executed);
    try {
      const result = execute({ schema, document, operationName, variableValues, rootValue, contextValue });
      const answerOf = (executed: ExecutionResult) => plain(positioned(masked(executed)), eventIdOf(rootValue));
      return result instanceof Promise ? result.then(answerOf, failed) : answerOf(result as ExecutionResult); // execute returns no other kinds of promise
    } catch (error) {
      return failed(error);
    }
  }

  function masked(result: ExecutionResult): ExecutionResult {
    return result.errors ? { ...result, errors: result.errors.map(maskError) } : result;
  }

  /** Also handles results with a value that JSON cannot represent. */
  function plain(result: ExecutionResult, eventId: string | undefined): Answer {
    try {
      return createAnswer(result, eventId);
    } catch (error) {
      return failed(error);
    }
  }

  function failed(error: unknown): Answer {
    return createAnswer({ errors: [maskError(error)] });
  }

  /** Returns the shared answer; computes it again if it turns out to be personal to another subscriber. */
  function shared(entry: Made, operation: SharedOperation, event: unknown, context: object): Answer | Promise<Answer> {
    const own = () =>
      entry.looks.personal && entry.context !== context ? run(operation, event, context) : entry.answer;
    return entry.answer instanceof Promise ? entry.answer.then(own) : own();
  }

  return {
    answer(operation, event, context, trace) {
      const ofEvent = made.get(event) ?? new Map<SharedOperation, Made>();
      const entry = ofEvent.get(operation);
      if (entry) {
        entry.subscribers++;
        return shared(entry, operation, event, context);
      }
      const fresh = make(operation, event, context, trace);
      fresh.subscribers++;
      ofEvent.set(operation, fresh);
      made.set(event, ofEvent);
      return fresh.answer;
    },
    failed,
    forget() {
      if (made.size === 0) return;
      if (isTracing) for (const ofEvent of made.values()) for (const entry of ofEvent.values()) endSpan(entry);
      made = new Map();
    },
  };
}

/** Events of an application's own subscriptions have no position. */
function withPosition(result: ExecutionResult, event: unknown): ExecutionResult {
  if (typeof event !== 'object' || event === null || !('position' in event)) return result;
  return { ...result, extensions: { ...result.extensions, position: String(event.position) } };
}

function attributesOf({ document, operationName }: SharedOperation) {
  return {
    'graphql.operation.type': 'subscription',
    'graphql.operation.name': getOperationAST(document, operationName)?.name?.value,
  };
}

function endSpan({ span, subscribers, answer }: Made): void {
  if (!span) return;
  span.set({ 'refold.subscribers': subscribers });
  if (answer instanceof Promise) void answer.finally(() => span.end());
  else span.end();
}

/** Wraps a context to detect when it is read. */
function watch(context: object, onLook: () => void): object {
  const looked =
    <A extends unknown[], R>(trap: (...args: A) => R) =>
    (...args: A): R => {
      onLook();
      return trap(...args);
    };
  return new Proxy(context, {
    get: looked((target: object, name: string | symbol) => Reflect.get(target, name)), // the receiver must be the target, because its getters use private fields
    set: looked(Reflect.set),
    has: looked(Reflect.has),
    ownKeys: looked(Reflect.ownKeys),
    getOwnPropertyDescriptor: looked(Reflect.getOwnPropertyDescriptor),
  });
}
