import { RefoldError } from '../../errors.ts';
import { payloadVersionsOf } from '../../events/payload-versions.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { readEndingRule } from '../../store/registry/inline-versions.ts';
import type { RegisteredVersion } from '../../store/registry/registry.ts';
import type { Queryable } from '../../store/statements/statement.ts';

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

/** What becomes of the unique rules of inline versions that are not declared as such any more. */
export async function endingRules(
  db: Queryable,
  registered: readonly RegisteredVersion[],
  projections: readonly Projection[],
): Promise<string[]> {
  const texts: string[] = [];
  for (const { name, version, state, inline } of registered) {
    const id = `${name}@${version}`;
    const declared = projections.find((one) => one.id === id);
    if (inline === null || state === 'retired' || declared?.mode === 'inline') continue;
    const rule = await readEndingRule(db, name, version);
    if (!rule) continue;
    const of = `the unique rule of ${rule.columns.join(', ')}`;
    const appends = `appends of ${rule.types.join(', ')}`;
    texts.push(
      declared
        ? `${id} is declared 'async' now, which ends ${of}: nothing checks ${appends} any more. Declare it with mode 'inline' if the values must stay unique.`
        : `${id} is not declared, and no other version holds ${of}: ${appends} are refused until a process declares it again. 'refold retire ${id}' ends the rule.`,
    );
  }
  return texts;
}

/** @returns warnings. @throws RefoldError `PROJECTION_REMOVED` */
export function removedVersions(
  registered: readonly RegisteredVersion[],
  projections: readonly Projection[],
): string[] {
  const warnings: string[] = [];
  for (const [name, versions] of Map.groupBy(
    registered.filter((entry) => entry.state === 'active'),
    (entry) => entry.name,
  )) {
    const declared = projections
      .filter((projection) => projection.name === name)
      .map((projection) => projection.version);
    const undeclared = versions.map((entry) => entry.version).filter((version) => !declared.includes(version));
    const highest = Math.max(...versions.map((entry) => entry.version));
    const retired = (version: number) =>
      registered.some((entry) => entry.name === name && entry.version === version && entry.state === 'retired');
    const coming = declared.filter((version) => !retired(version));
    if (undeclared.length === 0) continue;
    if (undeclared.length === versions.length) {
      const next = coming.length > 0 ? ` until ${name}@${Math.max(...coming)} is active` : '';
      throw new RefoldError(
        'PROJECTION_REMOVED',
        `${name}@${highest} is active, but this program declares no active version of '${name}': its readers would lose it. Declare ${name}@${highest} again${next}, or take it out of service with 'refold retire ${name}@${highest}'.`,
        { name, version: highest },
      );
    }
    if (undeclared.includes(highest))
      warnings.push(
        `${name}@${highest} is active, but this program declares no version above ${name}@${Math.max(...declared)}; it serves that one.`,
      );
    else
      warnings.push(
        ...undeclared.map(
          (version) =>
            `${name}@${version} is active, but this program does not declare it and so does not keep it current. When nothing needs it any more: 'refold retire ${name}@${version}'.`,
        ),
      );
  }
  return warnings;
}
