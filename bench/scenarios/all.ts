import type { Scenario } from '../scenario.ts';
import { append } from './append.ts';
import { buildLines } from './build-lines.ts';
import { fanOut } from './fan-out.ts';
import { firstBuild } from './first-build.ts';
import { latency } from './latency.ts';
import { readLog } from './read-log.ts';
import { reads } from './reads.ts';
import { rebuild } from './rebuild.ts';
import { threeProjections } from './three-projections.ts';

export const scenarios: readonly Scenario[] = [
  ...append,
  firstBuild,
  buildLines,
  threeProjections,
  rebuild,
  readLog,
  latency,
  ...reads,
  fanOut,
];
