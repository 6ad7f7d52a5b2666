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

type WithHealth = Pick<VersionStatus, 'name' | 'version' | 'lag'> & { readonly health: Health };

/** The worst first; among equal ones, those furthest behind. */
export function byHealth(a: WithHealth, b: WithHealth): number {
  const worse = healths.indexOf(a.health) - healths.indexOf(b.health);
  if (worse !== 0) return worse;
  const further = b.lag - a.lag;
  if (further !== 0n) return further > 0n ? 1 : -1;
  return a.name.localeCompare(b.name) || a.version - b.version;
}
