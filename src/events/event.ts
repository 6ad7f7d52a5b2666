import type { GlobalPosition } from './global-position.ts';

/** What travels with an event beside its payload. Free keys are allowed; the named ones have a meaning to Refold. */
export interface EventMetadata {
  /** Groups everything that came of one request. */
  readonly correlationId?: string;
  /** Id of the event or command that caused this event. */
  readonly causationId?: string;
  /** Who did it. */
  readonly actor?: string;
  /** W3C trace context of the request. */
  readonly traceparent?: string;
  readonly [key: string]: unknown;
}

/** An event to be appended. */
export interface NewEvent<Type extends string = string, Payload = unknown> {
  readonly type: Type;
  readonly payload: Payload;
  readonly metadata?: EventMetadata;
  /** A UUID; drawn by Refold when absent. */
  readonly id?: string;
}

/** An event as the log holds it. Immutable; its payload has the newest shape of its type (old shapes are upcast on read). */
export interface RecordedEvent<Type extends string = string, Payload = unknown> {
  readonly id: string;
  readonly family: string;
  readonly streamId: string;
  /** 1, 2, 3… in its stream. */
  readonly streamPosition: number;
  /** Its place in the order of the whole log. */
  readonly position: GlobalPosition;
  readonly type: Type;
  readonly payload: Payload;
  /** The payload's version as it was written; 1 for a type without upcasters. */
  readonly payloadVersion: number;
  readonly metadata: EventMetadata;
  /** When the database recorded it: ISO 8601, UTC. */
  readonly recordedAt: string;
}

/** The version that a stream must have for an append to be written. `0` says the same as `'no-stream'`. */
export type ExpectedVersion = number | 'any' | 'no-stream' | 'stream-exists';
