import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import { rebuildContract } from './rebuild.contract.ts';

const readSchema = 'read_models';
const reason = 'a try';

rebuildContract('beside the served table', {
  bounded: false,
  inPlace: false,
  ask: ({ db }, projection, actor = 'ann') => requestRebuild(db, projection, readSchema, { actor, reason }),
});

rebuildContract('beside the table that serves, from a snapshot', {
  bounded: true,
  inPlace: false,
  ask: ({ db, log }, projection, actor = 'ann') =>
    requestRebuild(db, projection, readSchema, { actor, reason }, { log, snapshot: 'latest' }),
});

rebuildContract('in place', {
  bounded: false,
  inPlace: true,
  ask: ({ db, log }, projection, actor = 'ann') =>
    rebuildInPlace({ db, log, readSchema, projection }, { actor, reason }),
});

rebuildContract('in place, from a snapshot', {
  bounded: true,
  inPlace: true,
  ask: ({ db, log }, projection, actor = 'ann') =>
    rebuildInPlace({ db, log, readSchema, projection }, { actor, reason }, 'latest'),
});
