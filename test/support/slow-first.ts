import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { slowFiles } from './slow-files.ts';

/**
 * Has the slow files run first, so that the last ones are short and no worker is idle for long at the end. Where Vitest has not seen them run it
 * goes by their size, and several of the slowest are the smallest.
 *
 * Inherits, since Vitest makes its sequencer from a class.
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
