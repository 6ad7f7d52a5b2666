import { RefoldError } from '../../errors.ts';
import type { ServedVersion, VersionProgress } from './version-map.ts';

/** Why a version that is served does not answer. `progress` was read after the map that serves it, so it may be newer. */
export function notReady(
  { projection, state: servedState }: ServedVersion,
  { state, position, head, progress }: Pick<VersionProgress, 'state' | 'position' | 'head' | 'progress'>,
): RefoldError {
  const { name, version, id } = projection;
  const fields = { projection: name, version, state, position: String(position), head: String(head), progress };
  return new RefoldError('PROJECTION_NOT_READY', `${why()}. Ask again later.`, fields);

  function why(): string {
    if (servedState === 'active') return `The table of ${id} can't be read`;
    if (state === 'active') return `${id} has just become active, and this process answers with it in a moment`;
    return `${id} is ${state} and not active yet: ${Math.floor(progress * 100)} % done, at position ${position} of ${head}`;
  }
}
