import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { slowFiles } from './slow-files.ts';

/**
 * Runs the slow files first, so the last files are short and no worker is idle for long at the end. Without timings of an earlier run, Vitest
 * orders files by size, and several of the slowest are the smallest.
 *
 * A subclass, because Vitest creates its sequencer from a class.
 */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const byProject = Map.groupBy(await super.sort(files), ({ project }) => project);
    return [...byProject.values()].flatMap((some) => some.toSorted((a, b) => placeOf(a) - placeOf(b)));
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = slowFiles.findIndex((path) => moduleId.endsWith(`/${path}`));
  return place < 0 ? slowFiles.length : place;
}
