import type { Scenario } from '../scenario.ts';
import { append } from './append.ts';
import { firstBuild } from './first-build.ts';
import { reads } from './reads.ts';

export const scenarios: readonly Scenario[] = [...append, firstBuild, ...reads];
