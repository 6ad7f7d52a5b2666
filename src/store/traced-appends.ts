import type { EventMetadata } from '../events/event.ts';
import { causesOf, continuedTrace, recordedTraceparent, traced, tracedEffect, traceparent } from '../tracing.ts';
import type { CheckedAppend } from './log/append-request.ts';
import type { AppendResult } from './log/append-result.ts';

/**
 * Appends in a span. The events keep the span as their `traceparent`, so that whatever they cause continues the trace. If nothing is under way
 * in this process, the trace of the given metadata is continued.
 */
export function tracedAppend<Request extends { readonly metadata?: EventMetadata }>(
  request: Request,
  append: (request: Request & { readonly cause?: string | undefined }) => Promise<AppendResult>,
): Promise<AppendResult> {
  const { metadata } = request;
  return traced('append', { kind: 'producer', within: continuedTrace(metadata?.traceparent) }, async (span) => {
    const own = traceparent();
    const result = await append({
      ...request,
      ...(own === undefined ? {} : { metadata: { ...metadata, traceparent: own } }),
      cause: recordedTraceparent() ?? undefined,
    });
    span.set({ 'refold.events': result.events.length, 'refold.position': result.position.toString() });
    return result;
  });
}

/** Several appends share a statement, so it is within the span of one append only if it has no other. */
export function tracedWrite<T>(batch: readonly CheckedAppend[], write: () => Promise<T>): Promise<T> {
  const causes = causesOf(batch.map(({ cause }) => cause));
  return tracedEffect('write appends', { attributes: { 'refold.appends': batch.length } }, causes, write);
}
