import { defineConfig } from '../../src/index.ts';
import { natsBroker } from '../outbox-relay/nats-broker.ts';
import { outboxRelay } from '../outbox-relay/relay.ts';
import shop from '../shopping-cart/app.ts';
import { customer, shoppingCart } from '../shopping-cart/events.ts';

const broker = natsBroker({ servers: process.env.NATS_URL ?? '127.0.0.1:4222', stream: 'shop' });

/** The shop as compose.yaml runs it, in several processes. A worker publishes its events to NATS. */
export default defineConfig({
  ...shop.given,
  reactors: [outboxRelay({ name: 'shop_relay', events: [shoppingCart, customer], broker })],
  // To try it in a browser. In production it is off unless it is set.
  gateway: { graphiql: true },
});
