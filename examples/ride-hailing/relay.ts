import type { Reactor } from '../../src/index.ts';
import type { Broker } from '../outbox-relay/broker.ts';
import { kafkaBroker } from '../outbox-relay/kafka-broker.ts';
import { natsBroker } from '../outbox-relay/nats-broker.ts';
import { outboxRelay } from '../outbox-relay/relay.ts';
import { rideOrder } from './events.ts';
import { rideOrderState } from './order.ts';

/** Others get each order as it was after an event. They depend on what an order is, and not on the events that it consists of. */
export function orderRelay(broker: Pick<Broker, 'publish'>): Reactor {
  return outboxRelay({
    name: 'order_relay',
    events: rideOrder,
    broker,
    integrationEvent: async ({ streamId, streamPosition }, { stateAfter }) => ({
      subject: 'order.changed',
      body: { orderId: streamId, revision: streamPosition, ...(await stateAfter(rideOrderState)) },
    }),
  });
}

/** The broker that the environment names: `KAFKA_BROKERS=127.0.0.1:9092,…`, or `NATS_URL=127.0.0.1:4222`. */
export function brokerOf(environment: NodeJS.ProcessEnv): Broker | undefined {
  const { KAFKA_BROKERS, NATS_URL } = environment;
  if (KAFKA_BROKERS) return kafkaBroker({ brokers: KAFKA_BROKERS.split(','), topic: 'orders' });
  return NATS_URL ? natsBroker({ servers: NATS_URL.split(','), stream: 'rides' }) : undefined;
}
