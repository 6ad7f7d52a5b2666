import { type DocumentNode, type ExecutionResult, execute, type GraphQLError, type GraphQLSchema } from 'graphql';
import { eventIdOf } from '../../schema/contract/change-feed.ts';
import { type Answer, createAnswer } from './answer.ts';

export interface OperationArgs {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
}

/** One operation, whoever sent it: the same schema, document and variables. */
export interface SharedOperation extends OperationArgs {
  readonly id: string;
  subscribers: number;
}

/** The operations that are subscribed to. */
export interface SharedOperations {
  join(args: OperationArgs): SharedOperation;
  leave(operation: SharedOperation): void;
}

export function createSharedOperations(): SharedOperations {
  // A parsed document comes again and again, since yoga remembers it by its text.
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
      const { schema, document, operationName, variableValues } = args;
      const operations = operationsOf(args);
      const id = JSON.stringify([operationName ?? null, variableValues ?? {}]);
      const operation = operations.get(id) ?? {
        ...{ id, subscribers: 0, schema, document },
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
 * Answers to events, each made once for all who ask the same and are given the same event. What a viewer may see decides which events it
 * is given; where a resolver looks at the context of an operation (as only an application's own can), the answer is the subscriber's alone.
 */
export interface Answers {
  answer(operation: SharedOperation, event: unknown, context: object): Answer | Promise<Answer>;
  /** The last answer, of what a subscription failed with. */
  failed(error: unknown): Answer;
  /** Drops what was made: those who were given an event at the same time have got its answer. */
  forget(): void;
}

interface Made {
  readonly answer: Answer | Promise<Answer>;
  readonly context: object;
  /** Whether a resolver has looked at the context; known when the answer is there. */
  readonly looks: { readonly personal: boolean };
}

export function createAnswers(maskError: (error: unknown) => GraphQLError): Answers {
  let made = new Map<unknown, Map<SharedOperation, Made>>();

  function make(operation: SharedOperation, event: unknown, context: object): Made {
    const looks = { personal: false };
    const watched = watch(context, () => {
      looks.personal = true;
    });
    return { looks, context, answer: run(operation, event, watched) };
  }

  function run(operation: SharedOperation, rootValue: unknown, contextValue: object): Answer | Promise<Answer> {
    const { schema, document, operationName, variableValues } = operation;
    try {
      const result = execute({ schema, document, operationName, variableValues, rootValue, contextValue });
      const answerOf = (executed: ExecutionResult) => plain(masked(executed), eventIdOf(rootValue));
      return result instanceof Promise ? result.then(answerOf, failed) : answerOf(result as ExecutionResult); // no other promises
    } catch (error) {
      return failed(error);
    }
  }

  function masked(result: ExecutionResult): ExecutionResult {
    return result.errors ? { ...result, errors: result.errors.map(maskError) } : result;
  }

  /** Also where the result holds a value that JSON can't tell. */
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

  /** The answer that another one got, unless it turns out to be of that one alone. */
  function shared(entry: Made, operation: SharedOperation, event: unknown, context: object): Answer | Promise<Answer> {
    const own = () =>
      entry.looks.personal && entry.context !== context ? run(operation, event, context) : entry.answer;
    return entry.answer instanceof Promise ? entry.answer.then(own) : own();
  }

  return {
    answer(operation, event, context) {
      const ofEvent = made.get(event) ?? new Map<SharedOperation, Made>();
      const entry = ofEvent.get(operation);
      if (entry) return shared(entry, operation, event, context);
      const fresh = make(operation, event, context);
      ofEvent.set(operation, fresh);
      made.set(event, ofEvent);
      return fresh.answer;
    },
    failed,
    forget() {
      if (made.size > 0) made = new Map();
    },
  };
}

/** The same, with a notice of being looked at. */
function watch(context: object, onLook: () => void): object {
  const looked =
    <A extends unknown[], R>(trap: (...args: A) => R) =>
    (...args: A): R => {
      onLook();
      return trap(...args);
    };
  return new Proxy(context, {
    get: looked((target: object, name: string | symbol) => Reflect.get(target, name)), // its getters know only itself
    set: looked(Reflect.set),
    has: looked(Reflect.has),
    ownKeys: looked(Reflect.ownKeys),
    getOwnPropertyDescriptor: looked(Reflect.getOwnPropertyDescriptor),
  });
}
