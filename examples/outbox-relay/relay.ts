import { defineReactor, type EventFamily, type Reactor, type RecordedEvent } from '../../src/index.ts';
import type { Broker, BrokerMessage } from './broker.ts';

/**
 * Publishes every event of some families to a broker: at least once, each stream in order, with the event's id as the message's id. The
 * event log is the outbox, so nothing has to be written twice.
 */
export function outboxRelay(options: {
  readonly name: string;
  readonly events: EventFamily | readonly EventFamily[];
  readonly broker: Pick<Broker, 'publish'>;
}): Reactor {
  return defineReactor({
    name: options.name,
    events: options.events,
    from: 'beginning',
    // Streams run concurrently: each waits for the broker's acknowledgement.
    concurrency: 50,
    timeout: 10_000,
    // If the broker is down, the relay waits. Receivers would miss a skipped message.
    onError: { policy: 'stop', retries: [{ times: Number.POSITIVE_INFINITY, first: 100, maxPause: 5_000 }] },
    handle: (event) => options.broker.publish([messageOf(event)]),
  });
}

function messageOf(event: RecordedEvent): BrokerMessage {
  const { id, family, type, streamId, streamPosition, position, payload, payloadVersion, metadata, recordedAt } = event;
  return {
    id,
    subject: `${family}.${type}`,
    key: `${family}/${streamId}`,
    body: JSON.stringify({ id, type, streamId, streamPosition, payload, metadata, recordedAt }),
    headers: {
      'refold-stream': encodeURIComponent(streamId),
      'refold-stream-position': String(streamPosition),
      'refold-position': position.toString(),
      'refold-payload-version': String(payloadVersion),
    },
  };
}
