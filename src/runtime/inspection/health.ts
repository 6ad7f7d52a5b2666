import type { VersionStatus } from '../monitoring/status.ts';

/** Whether a version needs attention, the worst first. */
export const healths = [
  'unchecked',
  'stopped',
  'unowned',
  'stalled',
  'held',
  'paused',
  'building',
  'behind',
  'current',
  'retired',
] as const;

export type Health = (typeof healths)[number];

// In seconds. An owner folds a batch in less, and the rate is that of the last minute.
const longSeconds = 30;

export function healthOf(version: VersionStatus): Health {
  const { state, processor, paused, inline, heldReason, lagEvents, lagSeconds, eventsPerSecond, owner } = version;
  if (state === 'retired') return 'retired';
  if (version.unchecked) return 'unchecked';
  if (state === 'failed' || processor === 'stopped') return 'stopped';
  if (paused) return 'paused';
  if (owner === null && processor === 'idle' && inline !== 'live') return 'unowned';
  if (lagEvents > 0n && lagSeconds > longSeconds && eventsPerSecond === 0) return 'stalled';
  if (state === 'building') return 'building';
  if (state === 'ready' && heldReason !== null) return 'held';
  return lagEvents > 0n ? 'behind' : 'current';
}

/** The worst first; among equal ones, those furthest behind. */
export function byHealth(
  a: { readonly health: Health; readonly status: VersionStatus },
  b: { readonly health: Health; readonly status: VersionStatus },
): number {
  const worse = healths.indexOf(a.health) - healths.indexOf(b.health);
  if (worse !== 0) return worse;
  const further = b.status.lag - a.status.lag;
  if (further !== 0n) return further > 0n ? 1 : -1;
  return a.status.name.localeCompare(b.status.name) || a.status.version - b.status.version;
}
