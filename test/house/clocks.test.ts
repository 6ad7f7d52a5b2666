import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** They compare with external times: of tokens, files, events and servers. */
const ofTheCalendar = [
  'cli/events/event-arguments.ts',
  'gateway/policies/authentication.ts',
  'gateway/policies/jwt.ts',
  'gateway/subscriptions/subscriptions.ts',
  'store/embedded/embedded-place.ts',
  'store/embedded/embedded-programs.ts',
  'store/server/server-settings.ts',
];

test('pauses and durations are measured by the clock that never jumps, performance.now()', () => {
  const root = join(import.meta.dirname, '../../src');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const reading = files.filter((file) => readFileSync(join(root, file), 'utf8').includes('Date.now()'));
  expect(reading.toSorted()).toEqual(ofTheCalendar);
});
