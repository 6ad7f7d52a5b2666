import type { ClientSubscription } from './subscription.ts';

export interface Deliveries {
  /** Delivers in the next turn, together with all other subscriptions that have messages. */
  add(subscription: ClientSubscription): void;
}

// In milliseconds. Between slices the process handles other requests. Ten milliseconds reach some thousand subscribers.
const slice = 10;
// Reading the clock costs about a tenth of a delivery.
const betweenLooks = 32;

/** Delivers in time slices. `onRound` is called when all subscriptions that had messages at one time are served. */
export function createDeliveries(onRound: () => void): Deliveries {
  let waiting: ClientSubscription[] = [];
  let round: ClientSubscription[] = [];
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
