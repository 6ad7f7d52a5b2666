import type { RecordedEvent } from '../events/event.ts';

export interface WaitUntilOptions {
  /**
   * Names the wait among the steps of this event, in up to 200 characters. Required if the handler waits more than once for the same event type,
   * or more than once for a time. Do not change or remove a name while events may be under way.
   * @default `wait:` and the event types, or `wait:until`
   */
  readonly step?: string;
}

export interface WaitForOptions extends WaitUntilOptions {
  /** The key of the event, as the reactor's `waitsFor` returns it. */
  readonly key: string;
  /**
   * How long to wait, in milliseconds, from the moment when the wait was first stored.
   * @default without end
   */
  readonly timeout?: number;
}

/**
 * Durable waits, as steps of a workflow. A handler that waits ends its attempt: no process holds anything meanwhile, and later events of its key
 * are handled. When the wait is over, the handler runs again from its start, its steps return their stored outcomes, and the wait returns its own.
 * Code after a wait, `finally` included, does not run before that. A handler waits for one thing at a time. The clock is the database's.
 */
export interface Waits<E extends RecordedEvent = never> {
  /**
   * Waits for an event of the type (or of one of the types) with the key: the first one in the log after the handled event that this handling has
   * not received from an earlier wait. It may have come before the handler waits.
   *
   * @returns undefined if no such event was recorded until the timeout was over. An event that was recorded in time counts, also if the reactor
   * reads it later.
   * @throws RefoldError `INVALID_STEP`, `STEP_CHANGED`; `HISTORY_CHANGED` if the log does not hold the returned event any more. After these the
   * attempt has failed, and its signal aborts.
   */
  for<T extends E['type']>(
    type: T | readonly T[],
    options: WaitForOptions & { readonly timeout?: undefined },
  ): Promise<Extract<E, { readonly type: T }>>;
  for<T extends E['type']>(
    type: T | readonly T[],
    options: WaitForOptions,
  ): Promise<Extract<E, { readonly type: T }> | undefined>;
  /**
   * Waits until a time: a `Date`, or an ISO 8601 date or time with its offset. A time that has passed is over at once.
   *
   * @throws RefoldError `INVALID_STEP`, `STEP_CHANGED`
   */
  until(time: Date | string, options?: WaitUntilOptions): Promise<void>;
}
