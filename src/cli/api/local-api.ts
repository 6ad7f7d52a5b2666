import { type ExecutionResult, execute, GraphQLError, parse, subscribe } from 'graphql';
import { adminSchema } from '../../admin/create-admin-schema.ts';
import { openAdminServices } from '../../admin/serving/admin-services.ts';
import { adminRights } from '../../config/admin-options.ts';
import type { Config } from '../../config/define-config.ts';
import { createNotifications, noNotifications } from '../../store/postgres/notifications.ts';
import type { Operation } from '../shared/open-operation.ts';
import type { OperatorApi } from './operator-api.ts';

/** The admin API within this process. Its caller has all rights: everybody who has the database's URL could do everything anyway. */
export function openLocalApi(config: Config, operation: Operation): OperatorApi & { close(): Promise<void> } {
  const { db, log, stores, find, lifecycle, schemaEvolution, reactors, actor } = operation;
  const { notifications: sessions, answerTimeout: answerTimeoutMs } = config.database;
  const notifications = sessions
    ? createNotifications({ url: db.url, applicationName: 'refold-cli', answerTimeoutMs })
    : noNotifications;
  const { contextOf, stop } = openAdminServices({
    application: { db, stores, find, log, config, schemaEvolution },
    acting: { db, stores, find, lifecycle, log, config },
    ...{ reactors, notifications, process: actor },
  });
  const caller = { name: actor, rights: new Set(adminRights) };
  const operationOf = (document: string, variableValues: object) => ({
    schema: adminSchema(),
    document: parse(document),
    variableValues: variableValues as Record<string, unknown>, // plain objects
    contextValue: contextOf(caller),
  });
  return {
    usualReason: 'by hand',
    async query<T>(document: string, variables = {}) {
      return dataOf(await execute(operationOf(document, variables))) as T; // as the document selects it
    },
    async *subscribe<T>(document: string, variables = {}) {
      const messages = await subscribe(operationOf(document, variables));
      if (!(Symbol.asyncIterator in messages)) throw errorOf(messages);
      for await (const message of messages) yield dataOf(message) as T; // as above
    },
    async close() {
      stop();
      await notifications.close();
    },
  };
}

function dataOf(result: ExecutionResult): unknown {
  if (result.errors) throw errorOf(result);
  return result.data;
}

/** What a resolver has thrown. */
function errorOf({ errors }: ExecutionResult): unknown {
  const [error] = errors ?? [];
  const cause = error?.originalError ?? error;
  return cause instanceof GraphQLError && cause.originalError ? cause.originalError : cause;
}
