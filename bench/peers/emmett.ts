import { item } from '../carts.ts';
import { openPool } from '../open-pool.ts';
import { importPeer, isInstalled } from './installed.ts';

interface CartEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

interface EventStore {
  appendToStream(
    stream: string,
    events: readonly CartEvent[],
    options?: { readonly expectedStreamVersion: bigint },
  ): Promise<unknown>;
  schema: { migrate(): Promise<unknown> };
  close(): Promise<void>;
}

interface Consumer {
  start(): Promise<void>;
  close(): Promise<void>;
}

interface EmmettPostgresql {
  getPostgreSQLEventStore(url: string, options: object): EventStore;
  postgreSQLEventStoreConsumer(options: object): Consumer & { projector(options: object): unknown };
  pongoSingleStreamProjection(options: object): object;
}

export const emmettName = 'Emmett 0.42';

// The common property of its errors of the family ConcurrencyError.
const conflictCode = 412;

/** How its consumer reads the log. */
export interface Pulling {
  readonly batchSize: number;
  /** Its pause after each full batch, in milliseconds. */
  readonly pullingFrequencyInMs: number;
}

/** The defaults of its consumer. */
export const emmettDefault: Pulling = { batchSize: 100, pullingFrequencyInMs: 50 };

export interface Emmett {
  /** Adds so many items to a cart, each by an event. False if the stream was not at the expected version, and nothing was written. */
  append(stream: string, items: number, expectedVersion?: number): Promise<boolean>;
  /** Number of messages in its log. */
  count(): Promise<number>;
  /** Projects the whole log into documents, one per stream, and returns the sum of their items. */
  build(collection: string, pulling: Pulling): Promise<number>;
  close(): Promise<void>;
}

export function emmettIsInstalled(): boolean {
  return isInstalled('@event-driven-io/emmett-postgresql');
}

export async function createEmmett(url: string, connections: number): Promise<Emmett> {
  const { getPostgreSQLEventStore, postgreSQLEventStoreConsumer, pongoSingleStreamProjection } =
    await importPeer<EmmettPostgresql>('@event-driven-io/emmett-postgresql');
  const pool = openPool(url, connections);
  const store = getPostgreSQLEventStore(url, { connectionOptions: { pool } });
  await store.schema.migrate();
  const number = async (text: string) => (await pool.query<{ n: number }>(text)).rows[0]?.n ?? 0;
  return {
    async append(stream, items, expectedVersion) {
      const events = Array<CartEvent>(items).fill({ type: 'ItemAdded', data: item });
      try {
        if (expectedVersion === undefined) await store.appendToStream(stream, events);
        else await store.appendToStream(stream, events, { expectedStreamVersion: BigInt(expectedVersion) });
        return true;
      } catch (error) {
        if (error instanceof Error && 'errorCode' in error && error.errorCode === conflictCode) return false;
        throw error;
      }
    },
    count: () => number('select count(*)::int as n from emt_messages'),
    async build(collectionName, pulling) {
      const consumer = postgreSQLEventStoreConsumer({
        connectionString: url,
        stopWhen: { noMessagesLeft: true },
        pulling,
      });
      consumer.projector({
        processorId: collectionName,
        projection: pongoSingleStreamProjection({
          collectionName,
          canHandle: ['Opened', 'ItemAdded'],
          evolve: (
            document: { items: number } | null,
            { type, data }: CartEvent & { data: { quantity?: number } },
          ) => ({
            items: (document?.items ?? 0) + (type === 'ItemAdded' ? (data.quantity ?? 0) : 0),
          }),
        }),
      });
      await consumer.start();
      await consumer.close();
      return number(`select sum((data ->> 'items')::int)::int as n from ${collectionName}`);
    },
    async close() {
      await store.close();
      if (!pool.ended) await pool.end();
    },
  };
}
