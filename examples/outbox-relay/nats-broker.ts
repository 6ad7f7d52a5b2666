import { type JetStreamClient, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers, type NatsConnection, nanos } from '@nats-io/transport-node';
import type { Broker } from './broker.ts';

export interface NatsBrokerOptions {
  /** Such as `127.0.0.1:4222`. */
  readonly servers: string | string[];
  /** The JetStream stream; created with the subjects `NAME.>` if it does not exist. */
  readonly stream: string;
  /** How long JetStream remembers ids, in milliseconds: within this time it drops duplicates. @default 120000 */
  readonly duplicateWindow?: number;
}

/**
 * A broker on NATS JetStream. A message's id travels as `Nats-Msg-Id`: JetStream itself drops duplicates within its window;
 * after that, receivers detect them by the same header. Connects on the first publish.
 */
export function natsBroker({ servers, stream, duplicateWindow = 120_000 }: NatsBrokerOptions): Broker {
  let opened: Promise<{ connection: NatsConnection; client: JetStreamClient }> | undefined;

  async function open() {
    const connection = await connect({ servers, maxReconnectAttempts: -1, name: 'outbox-relay' });
    try {
      const { streams } = await jetstreamManager(connection);
      const known = await streams.names().next();
      if (!known.includes(stream))
        await streams.add({ name: stream, subjects: [`${stream}.>`], duplicate_window: nanos(duplicateWindow) });
      return { connection, client: jetstream(connection) };
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  return {
    async publish(messages) {
      opened ??= open().catch((error: unknown) => {
        opened = undefined;
        throw error;
      });
      const { client } = await opened;
      for (const { id, subject, body, headers: given } of messages) {
        const sent = headers();
        for (const [name, value] of Object.entries(given)) sent.set(name, value);
        await client.publish(`${stream}.${subject}`, body, { msgID: id, headers: sent });
      }
    },
    async close() {
      const { connection } = (await opened?.catch(() => undefined)) ?? {};
      await connection?.close();
    },
  };
}
