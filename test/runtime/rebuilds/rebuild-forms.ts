import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import type { RebuildForm } from './rebuild.contract.ts';

const readSchema = 'read_models';
const reason = 'a try';

/** Every form of a rebuild, by what it does. */
export const rebuildForms: Readonly<Record<string, RebuildForm>> = {
  'beside the served table': {
    bounded: false,
    inPlace: false,
    ask: ({ db }, projection, actor = 'ann') => requestRebuild(db, projection, readSchema, { actor, reason }),
  },
  'beside the table that serves, from a snapshot': {
    bounded: true,
    inPlace: false,
    ask: ({ db, log }, projection, actor = 'ann') =>
      requestRebuild(db, projection, readSchema, { actor, reason }, { log, snapshot: 'latest' }),
  },
  'in place': {
    bounded: false,
    inPlace: true,
    ask: ({ db, log }, projection, actor = 'ann') =>
      rebuildInPlace({ db, log, readSchema, projection }, { actor, reason }),
  },
  'in place, from a snapshot': {
    bounded: true,
    inPlace: true,
    ask: ({ db, log }, projection, actor = 'ann') =>
      rebuildInPlace({ db, log, readSchema, projection }, { actor, reason }, 'latest'),
  },
};
