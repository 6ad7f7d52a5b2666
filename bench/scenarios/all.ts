import type { Scenario } from '../scenario.ts';
import { anchors } from './anchors.ts';
import { append } from './append.ts';
import { appendConflicts, appendInlineConflicts } from './append-conflicts.ts';
import { appendInline } from './append-inline.ts';
import { appendStreams } from './append-streams.ts';
import { builds } from './builds.ts';
import { commits } from './commits.ts';
import { devEdit } from './dev-edit.ts';
import { fanOut } from './fan-out.ts';
import { firstBuild } from './first-build.ts';
import { growth } from './growth.ts';
import { latency } from './latency.ts';
import { manyProcesses } from './many-processes.ts';
import { manyProjections } from './many-projections.ts';
import { memory } from './memory.ts';
import { placements } from './placements.ts';
import { readLog } from './read-log.ts';
import { readStores } from './read-stores.ts';
import { reads } from './reads.ts';
import { rebuild } from './rebuild.ts';
import { tailAtTheHead } from './tail-at-the-head.ts';
import { threeProjections } from './three-projections.ts';

export const scenarios: readonly Scenario[] = [
  ...append,
  appendStreams,
  appendConflicts,
  appendInline,
  appendInlineConflicts,
  firstBuild,
  ...builds,
  threeProjections,
  rebuild,
  readLog,
  growth,
  ...latency,
  devEdit,
  tailAtTheHead,
  anchors,
  memory,
  manyProjections,
  manyProcesses,
  readStores,
  placements,
  commits,
  ...reads,
  ...fanOut,
];
