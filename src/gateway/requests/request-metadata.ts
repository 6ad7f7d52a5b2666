import { randomUUID } from 'node:crypto';
import type { EventMetadata } from '../../events/event.ts';
import { isTraceparent } from '../../tracing.ts';

/**
 * The metadata for the events of a request: the client's `x-correlation-id` or a generated one, its W3C trace context, and the actor.
 * Malformed values are left out, because they would stay in the log for ever.
 */
export function eventMetadata(header: (name: string) => string | undefined, actor: string | null): EventMetadata {
  const correlationId = header('x-correlation-id');
  const traceparent = header('traceparent');
  return {
    correlationId:
      correlationId !== undefined && /^[\w.:/+=-]{1,200}$/.test(correlationId) ? correlationId : randomUUID(),
    ...(traceparent !== undefined && isTraceparent(traceparent) ? { traceparent } : {}),
    ...(actor === null ? {} : { actor }),
  };
}
