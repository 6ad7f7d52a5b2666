import { expect, test } from 'vitest';
import { globalPosition } from '../../../src/events/global-position.ts';
import { notReady } from '../../../src/projections/projection/not-ready.ts';
import type { VersionState } from '../../../src/projections/projection/version-map.ts';
import { parcelV1 } from '../../schema/parcels.ts';

test.each<[known: VersionState, state: VersionState, message: string]>([
  ['building', 'building', 'parcel@1 is building and not active yet: 12 % done, at position 1 of 8. Ask again later.'],
  [
    'ready',
    'active',
    'parcel@1 has just become active, and this process answers with it in a moment. Ask again later.',
  ],
  ['active', 'active', "The table of parcel@1 can't be read. Ask again later."],
])('a version that is %s here, and %s in the registry, says why it does not answer', (known, state, message) => {
  const progress = { position: globalPosition('1'), head: globalPosition('8'), progress: 0.125 };
  const error = notReady({ projection: parcelV1, active: false, state: known }, { state, ...progress });
  expect([error.message, error.code]).toEqual([message, 'PROJECTION_NOT_READY']);
});
