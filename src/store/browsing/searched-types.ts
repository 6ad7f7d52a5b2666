import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { familyStoredAs } from '../../events/event-names.ts';
import { readLoggedTypes } from '../log/logged-types.ts';
import type { Queryable } from '../statements/statement.ts';

/**
 * Resolves names of event types to `family.type` under all names that the log may hold. A name is that of a type (`Opened`, of any family), of a
 * type of one family (`account.Opened`), or of all types of a family (`account.*`). Types that only the log knows are found, too.
 *
 * @throws RefoldError `UNKNOWN_EVENT_TYPE` if neither the application nor the log has it
 */
export async function searchedTypes(
  db: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  names: readonly string[],
): Promise<string[]> {
  const known = [...declaredTypes(families), ...(await undeclaredTypes(db, families))];
  return names.flatMap((name) => {
    const found = known.filter(
      ({ family, type }) => name === type || name === `${family}.${type}` || name === `${family}.*`,
    );
    if (found.length > 0) return found.flatMap(({ stored }) => stored);
    const candidates = known.flatMap(({ family, type }) => [type, `${family}.${type}`]);
    throw new RefoldError(
      'UNKNOWN_EVENT_TYPE',
      `Neither the application nor the log has an event type '${name}'.${closest(name, candidates)} Write it like Opened, account.Opened or account.*.`,
      { type: name },
    );
  });
}

/**
 * Resolves the name of a family to the one that the log has. A family that only the log knows is found, too.
 *
 * @throws RefoldError `UNKNOWN_EVENT_TYPE` if neither the application nor the log has it
 */
export async function searchedFamily(
  db: Queryable,
  families: ReadonlyMap<string, EventFamily>,
  name: string,
): Promise<string> {
  const declared = [...families.values()].find((one) => one.name === name || one.formerNames.includes(name));
  if (declared) return declared.storedName;
  const logged = await readLoggedTypes(db);
  if (logged.some(({ family }) => family === name)) return name;
  const known = [...[...families.values()].map((one) => one.name), ...logged.map(({ family }) => family)];
  throw new RefoldError(
    'UNKNOWN_EVENT_TYPE',
    `Neither the application nor the log has an event family '${name}'.${closest(name, known)}`,
    { family: name },
  );
}

interface KnownType {
  readonly family: string;
  readonly type: string;
  readonly stored: readonly string[];
}

function declaredTypes(families: ReadonlyMap<string, EventFamily>): KnownType[] {
  return [...families.values()].flatMap(({ name: family, storedName, typeNames }) =>
    Object.entries(typeNames).map(([type, names]) => ({
      family,
      type,
      stored: names.map((one) => `${storedName}.${one}`),
    })),
  );
}

async function undeclaredTypes(db: Queryable, families: ReadonlyMap<string, EventFamily>): Promise<KnownType[]> {
  const logged = await readLoggedTypes(db);
  return logged
    .filter(({ family, type }) => familyStoredAs(families, family)?.declaredTypes[type] === undefined)
    .map(({ family, type }) => ({
      family: familyStoredAs(families, family)?.name ?? family,
      type,
      stored: [`${family}.${type}`],
    }));
}
