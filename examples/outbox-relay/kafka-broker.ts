import { Kafka, logLevel, Partitioners, type Producer } from 'kafkajs';
import type { Broker, BrokerMessage } from './broker.ts';

export interface KafkaBrokerOptions {
  /** Such as `['127.0.0.1:9092']`. */
  readonly brokers: string[];
  readonly topic: string;
}

/** What one `publish` asked for. */
interface Publication {
  readonly messages: readonly BrokerMessage[];
  readonly done: PromiseWithResolvers<void>;
}

/**
 * The same on Kafka: acknowledged by all replicas in sync, partitioned by stream to keep each stream's order, and with the
 * message's id as the header `id`.
 *
 * Only one request is under way at a time; what is published meanwhile goes into the next one. The producer of kafkajs
 * numbers its requests, so a broker drops a repetition whose original it has. But after a lost response, kafkajs uses the number again
 * for the next request: with several requests under way, the broker would drop another message as a repetition.
 *
 * While no broker answers, kafkajs repeats the request until one does. Kafka drops no repetitions across producers: after a
 * restart of this process, or together with a message that a broker refuses, some are stored twice. Receivers drop them by the header `id`.
 */
export function kafkaBroker({ brokers, topic }: KafkaBrokerOptions): Broker {
  const kafka = new Kafka({ clientId: 'outbox-relay', brokers, logLevel: logLevel.NOTHING });
  const waiting: Publication[] = [];
  /** By the ids of its messages: the relay repeats a publication that takes long, and must not queue it twice. */
  const underWay = new Map<string, Publication>();
  let opened: Promise<Producer> | undefined;
  let sending = false;

  async function open(): Promise<Producer> {
    const producer = kafka.producer({
      idempotent: true,
      createPartitioner: Partitioners.DefaultPartitioner,
      // Fewer retries would leave requests behind of which nobody knows whether the broker has them.
      retry: { initialRetryTime: 100, maxRetryTime: 5_000, retries: Number.MAX_SAFE_INTEGER },
    });
    await producer.connect();
    return producer;
  }

  async function send(messages: readonly BrokerMessage[]): Promise<void> {
    opened ??= open();
    try {
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
    } catch (error) {
      // A request that failed may have used its number: go on with another producer, whose numbers start at 0.
      const failed = opened;
      opened = undefined;
      void failed.then((producer) => producer.disconnect()).catch(() => {});
      throw error;
    }
  }

  async function sendOne({ messages, done }: Publication): Promise<void> {
    await send(messages).then(done.resolve, done.reject);
  }

  async function sendWaiting(): Promise<void> {
    if (sending) return;
    sending = true;
    while (waiting.length > 0) {
      const publications = waiting.splice(0);
      try {
        await send(publications.flatMap(({ messages }) => messages));
        for (const { done } of publications) done.resolve();
      } catch (error) {
        // The broker has refused one of them, for its size perhaps: only that one may fail.
        if (isRefusal(error)) for (const publication of publications) await sendOne(publication);
        else for (const { done } of publications) done.reject(error);
      }
    }
    sending = false;
  }

  return {
    publish(messages) {
      const ids = messages.map(({ id }) => id).join();
      const known = underWay.get(ids);
      if (known) return known.done.promise;
      const publication: Publication = { messages, done: Promise.withResolvers<void>() };
      underWay.set(ids, publication);
      waiting.push(publication);
      void sendWaiting();
      return publication.done.promise.finally(() => underWay.delete(ids));
    },
    async close() {
      const producer = await opened?.catch(() => undefined);
      await producer?.disconnect();
    },
  };
}

/** Whether a broker has answered with an error that repetition does not cure. The class of kafkajs is no named export in ES modules. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && error.name === 'KafkaJSProtocolError';
}
