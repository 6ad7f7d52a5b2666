import { setImmediate, setTimeout } from 'node:timers/promises';
import type { RecordedEvent } from './event.ts';

/** Receives an event that code of the application worked on for a second or longer without a pause. */
export type OnSlowEvent = (event: Pick<RecordedEvent, 'type' | 'position' | 'streamId'>, milliseconds: number) => void;

// In milliseconds. Renewals, sockets and other processors of the process wait for a turn.
const longestTurn = 50;
const slowFrom = 1000;
// After a long event, a turn lasts longer: what other processors do takes several answers of the database. A twentieth of the time, but at most this.
const longestRest = 250;
const shareOfRest = 20;

/**
 * Paces synchronous work on events: after a while, the event loop has a turn, and an event that takes long is reported. Call `start` before
 * the first event, `after` after each, and `turn` when `after` has returned true.
 */
export class EventPace {
  readonly #onSlow: OnSlowEvent | undefined;
  #turnBegan = 0;
  #eventBegan = 0;
  #turns: Promise<void> = Promise.resolve();

  constructor(onSlow?: OnSlowEvent) {
    this.#onSlow = onSlow;
  }

  /** The event loop has just had a turn, and the work on an event begins. */
  start(): void {
    this.#turnBegan = performance.now();
    this.#eventBegan = this.#turnBegan;
  }

  /** The work on an event begins. */
  begin(): void {
    this.#eventBegan = performance.now();
  }

  /** Whether the event loop must have a turn before the next event. */
  get isDue(): boolean {
    return performance.now() - this.#turnBegan >= longestTurn;
  }

  /** The work on an event has ended, and that on the next one begins. Returns whether the event loop must have a turn first. */
  after(event: RecordedEvent): boolean {
    const now = performance.now();
    const took = now - this.#eventBegan;
    this.#eventBegan = now;
    if (took >= slowFrom) this.#onSlow?.(event, took);
    return now - this.#turnBegan >= longestTurn;
  }

  /** Lets everything else of this process run. Callers that share a pace get a turn each. */
  turn(): Promise<void> {
    this.#turns = this.#turns.then(async () => {
      const busy = performance.now() - this.#turnBegan;
      await (busy < slowFrom ? setImmediate() : setTimeout(Math.min(longestRest, busy / shareOfRest)));
      this.start();
    });
    return this.#turns;
  }
}
