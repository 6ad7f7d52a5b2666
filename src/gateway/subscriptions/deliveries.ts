import type { Subscription } from './subscription.ts';

export interface Deliveries {
  /** Delivers to it in the next turn, together with all others that have news. */
  add(subscription: Subscription): void;
}

// Between slices other requests are answered. In ten milliseconds some thousand subscribers are reached.
const slice = 10;
// Asking for the time costs about a tenth of a delivery.
const betweenLooks = 32;

/** Delivers in slices of time. `onRound` is called when all who had news at one time have been delivered to. */
export function createDeliveries(onRound: () => void): Deliveries {
  let waiting: Subscription[] = [];
  let round: Subscription[] = [];
  let delivered = 0;
  let isScheduled = false;

  function deliver(): void {
    if (delivered === round.length) {
      round = waiting;
      waiting = [];
      delivered = 0;
    }
    const end = performance.now() + slice;
    while (delivered < round.length) {
      const subscription = round[delivered++];
      if (!subscription) continue;
      subscription.isQueued = false;
      subscription.deliver();
      if (delivered % betweenLooks === 0 && performance.now() >= end) break;
    }
    if (delivered === round.length) {
      round = [];
      delivered = 0;
      onRound();
    }
    isScheduled = round.length + waiting.length > 0;
    if (isScheduled) setImmediate(deliver);
  }

  return {
    add(subscription) {
      if (subscription.isQueued) return;
      subscription.isQueued = true;
      waiting.push(subscription);
      if (!isScheduled) setImmediate(deliver);
      isScheduled = true;
    },
  };
}
