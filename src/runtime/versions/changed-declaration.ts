import { payloadVersionsOf } from '../../events/payload-versions.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { RegisteredVersion } from '../../store/registry/registry.ts';

/** What to do if a version's table is declared differently from the registered one. */
export function tableChangedMessage(
  { id, name, version, startAfter }: Projection,
  { startsAfter }: Pick<RegisteredVersion, 'startsAfter'>,
): string {
  if (startsAfter !== startAfter)
    return `${id}: its table begins after position ${startsAfter}, and 'startAfter' is now ${startAfter}. Undo the change and declare it as ${name}@${version + 1} beside this version.`;
  return `${id}: its table is declared differently from the one in the database. Undo the change and declare it as ${name}@${version + 1} beside this version.`;
}

/** What to do if the code that builds a version's rows has changed. */
export function codeChangedMessage({ id, name, version, sqlFold, families }: Projection): string {
  const more = Object.keys(payloadVersionsOf(families)).length > 0 ? ', or of an upcaster,' : '';
  return `${id}: the ${sqlFold ? `SQL of its evolveSql${more} is not the SQL` : `code of its key or evolve${more} is not the code`} that built its rows. Rows folded from now on follow the new code, older ones don't. If results differ, declare ${name}@${version + 1}; after a bug was fixed, 'refold rebuild ${id}' builds all rows with the new code.`;
}
