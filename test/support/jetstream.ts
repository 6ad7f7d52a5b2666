import { existsSync } from 'node:fs';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { createNatsServer, type NatsServer } from './nats-server.ts';

const program = '/usr/sbin/nats-server';

/** Starts the NATS server of the system's package. */
export async function startNats(): Promise<NatsServer> {
  if (!existsSync(program)) {
    throw new Error(
      `Expected a NATS server at ${program}, but it is not there. Install it with: ` +
        'apt-get update && apt-get install --no-install-recommends nats-server',
    );
  }
  const nats = await createNatsServer(program);
  await nats.start();
  return nats;
}

/** A message that JetStream holds. */
export interface HeldMessage {
  readonly subject: string;
  readonly body: string;
  header(name: string): string;
}

/** The messages of a JetStream stream, in its order. */
export async function heldMessages(address: string, stream: string): Promise<readonly HeldMessage[]> {
  const connection = await connect({ servers: address });
  try {
    const { streams } = await jetstreamManager(connection);
    const { state } = await streams.info(stream);
    const consumer = await jetstream(connection).consumers.get(stream);
    const held: HeldMessage[] = [];
    // One fetch ends after a while, with the messages received until then.
    while (held.length < state.messages) {
      for await (const message of await consumer.fetch({ max_messages: state.messages - held.length })) {
        const { subject, headers } = message;
        held.push({ subject, body: message.string(), header: (name) => headers?.get(name) ?? '' });
      }
    }
    return held;
  } finally {
    await connection.close();
  }
}
