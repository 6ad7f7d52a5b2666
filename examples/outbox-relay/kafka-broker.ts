import { Kafka, type Producer } from 'kafkajs';
import type { Broker } from './broker.ts';

export interface KafkaBrokerOptions {
  /** Such as `['127.0.0.1:9092']`. */
  readonly brokers: string[];
  readonly topic: string;
}

/**
 * The same on Kafka: acknowledged by all replicas in sync, partitioned by stream to keep each stream's order, and with the
 * message's id as the header `id`. Kafka drops no duplicates across restarts of a producer: receivers do, by that header.
 *
 * Its types are checked with the project, but no test runs it against a broker: the relay's tests use NATS.
 */
export function kafkaBroker({ brokers, topic }: KafkaBrokerOptions): Broker {
  let opened: Promise<Producer> | undefined;

  async function open(): Promise<Producer> {
    const producer = new Kafka({ clientId: 'outbox-relay', brokers }).producer({ idempotent: true });
    await producer.connect();
    return producer;
  }

  return {
    async publish(messages) {
      opened ??= open().catch((error: unknown) => {
        opened = undefined;
        throw error;
      });
      const producer = await opened;
      await producer.send({
        topic,
        acks: -1,
        messages: messages.map(({ id, subject, key, body, headers }) => ({
          key,
          value: body,
          headers: { ...headers, id, subject },
        })),
      });
    },
    async close() {
      const producer = await opened?.catch(() => undefined);
      await producer?.disconnect();
    },
  };
}
