import { expect } from 'vitest';

/** Matches what a page shows: `…` stands for a value, or a part of a text, that differs each time; so does the anchor of a position. */
export function asShown(shown: unknown): unknown {
  if (shown === '…') return expect.anything();
  const [, position, rows] = (typeof shown === 'string' && /^(\d+)\.[0-9a-f]{8}(@\d+\.\d+)?$/.exec(shown)) || [];
  if (position !== undefined) return expect.stringMatching(new RegExp(`^${position}\\.[0-9a-f]{8}${rows ?? ''}$`));
  if (typeof shown === 'string' && shown.includes('…')) return expect.stringMatching(patternOf(shown));
  if (Array.isArray(shown)) return shown.map(asShown);
  if (typeof shown !== 'object' || shown === null) return shown;
  return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, asShown(value)]));
}

function patternOf(shown: string): RegExp {
  const parts = shown.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`);
}
