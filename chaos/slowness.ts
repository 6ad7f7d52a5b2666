import { writeSync } from 'node:fs';

/** The line that a process prints when an event begins to block it. */
export const blockedLine = 'blocked';

let isSlow = false;

/** Makes folds of this process slow. Judges and operators fold the same events, and have no time for it. */
export function beSlow(): void {
  isSlow = true;
}

// Later, when other faults are active, any rebuild or new owner folds it as quickly as other events.
const newMs = 4_000;

/** Blocks the event loop for as long as a new event says. */
export function takeTime(event: {
  readonly recordedAt: string;
  readonly payload: { readonly slowMs?: number | undefined };
}): void {
  const { slowMs } = event.payload;
  if (!isSlow || slowMs === undefined || Date.now() - Date.parse(event.recordedAt) > newMs) return;
  writeSync(1, `${blockedLine}\n`); // written before it is blocked
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, slowMs);
}
