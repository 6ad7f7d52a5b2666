import {
  defineReactor,
  type EventFamily,
  type Reactor,
  type ReactorContext,
  type RecordedEvent,
} from '../../src/index.ts';
import type { Broker, BrokerMessage } from './broker.ts';

/** What others get of an event. */
export interface IntegrationEvent {
  /** The kind of message, such as `order.changed`. */
  readonly subject: string;
  /** It becomes JSON. */
  readonly body: object;
}

/**
 * Publishes a message for every event of some families to a broker: at least once, each stream in order, with the event's id as the message's
 * id. The event log is the outbox, so nothing has to be written twice.
 */
export function outboxRelay(options: {
  readonly name: string;
  readonly events: EventFamily | readonly EventFamily[];
  readonly broker: Pick<Broker, 'publish'>;
  /** What is published for an event, such as the state after it. @default the event itself */
  readonly integrationEvent?: (event: RecordedEvent, context: ReactorContext) => Promise<IntegrationEvent>;
}): Reactor {
  const { integrationEvent = eventItself } = options;
  return defineReactor({
    name: options.name,
    events: options.events,
    from: 'beginning',
    // Streams run concurrently: each waits for the broker's acknowledgement.
    concurrency: 50,
    timeout: 10_000,
    // If the broker is down, the relay waits. Receivers would miss a skipped message.
    onError: { policy: 'stop', retries: [{ times: Number.POSITIVE_INFINITY, first: 100, maxPause: 5_000 }] },
    handle: async (event, context) =>
      options.broker.publish([messageOf(event, await integrationEvent(event, context))]),
  });
}

async function eventItself(event: RecordedEvent): Promise<IntegrationEvent> {
  const { id, family, type, streamId, streamPosition, payload, metadata, recordedAt } = event;
  return {
    subject: `${family}.${type}`,
    body: { id, type, streamId, streamPosition, payload, metadata, recordedAt },
  };
}

function messageOf(event: RecordedEvent, { subject, body }: IntegrationEvent): BrokerMessage {
  const { id, family, streamId, streamPosition, position, payloadVersion } = event;
  return {
    id,
    subject,
    key: `${family}/${streamId}`,
    body: JSON.stringify(body),
    headers: {
      'refold-stream': encodeURIComponent(streamId),
      'refold-stream-position': String(streamPosition),
      'refold-position': position.toString(),
      'refold-payload-version': String(payloadVersion),
    },
  };
}
