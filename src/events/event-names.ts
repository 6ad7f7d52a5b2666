import { invalidDeclaration } from '../errors.ts';
import { closest } from './closest.ts';
import type { RecordedEvent } from './event.ts';

/** The names of a family and its types: as declared, and as the log keeps them. */
export interface EventNames {
  /** The name under which the log keeps the family: the first of its former names, or its name. */
  readonly storedName: string;
  /** The former names of the family, oldest first. */
  readonly formerNames: readonly string[];
  /** All names of each type, oldest first. Events are written under the first one, and read under all. */
  readonly typeNames: Readonly<Record<string, readonly string[]>>;
  /** The declared name of each stored type. */
  readonly declaredTypes: Readonly<Record<string, string>>;
}

interface NamedFamily extends EventNames {
  readonly name: string;
}

/** The former names in a declaration of events. */
export interface FormerNames {
  readonly was?: readonly string[];
  readonly types?: Readonly<Record<string, { readonly was: readonly string[] } | undefined>>;
}

const familyName = /^[a-z][a-z0-9_]{0,62}$/;
const typeName = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;

/** Checks all names of a family. @throws RefoldError `INVALID_DECLARATION` */
export function eventNames(
  subject: string,
  name: string,
  types: readonly string[],
  { was = [], types: renamed = {} }: FormerNames,
): EventNames {
  if (!familyName.test(name))
    throw invalidDeclaration(subject, `a family is named in snake_case, such as 'shopping_cart'.`);
  for (const type of types) {
    if (!typeName.test(type))
      throw invalidDeclaration(
        subject,
        `'${type}' is not a valid event type name; use letters and digits, such as 'ProductItemAdded'.`,
      );
  }
  checkFormer(subject, 'was', was, familyName);
  if (was.includes(name))
    throw invalidDeclaration(subject, `'was' names '${name}', its name of today. Remove it there.`);
  const declaredTypes: Record<string, string> = Object.create(null); // a type may be called 'constructor'
  const typeNames: Record<string, readonly string[]> = Object.create(null);
  for (const type of types) {
    typeNames[type] = Object.freeze([type]);
    declaredTypes[type] = type;
  }
  for (const [type, entry] of Object.entries(renamed)) {
    if (!types.includes(type))
      throw invalidDeclaration(subject, `'types' names '${type}', which it does not define.${closest(type, types)}`);
    const former = entry?.was;
    checkFormer(subject, `types.${type}.was`, former, typeName);
    for (const old of former) {
      const taken = declaredTypes[old];
      if (taken !== undefined)
        throw invalidDeclaration(
          subject,
          `'${old}' is a former name of '${type}', and ${taken === old ? 'an event type of its own' : `one of '${taken}', too`}. A name belongs to one type: remove it from one of the two.`,
        );
      declaredTypes[old] = type;
    }
    typeNames[type] = Object.freeze([...former, type]);
  }
  return {
    storedName: was[0] ?? name,
    formerNames: Object.freeze([...was]),
    typeNames: Object.freeze(typeNames),
    declaredTypes: Object.freeze(declaredTypes),
  };
}

function checkFormer(subject: string, option: string, was: unknown, valid: RegExp): asserts was is readonly string[] {
  if (!Array.isArray(was)) throw invalidDeclaration(subject, `'${option}' is a list of former names, oldest first.`);
  for (const [index, old] of was.entries()) {
    if (typeof old !== 'string' || !valid.test(old))
      throw invalidDeclaration(subject, `'${option}' holds '${String(old)}', which was never a valid name.`);
    if (was.indexOf(old) < index) throw invalidDeclaration(subject, `'${option}' names '${old}' twice.`);
  }
}

/**
 * Refuses families whose names clash: a name, of today or a former one, belongs to one family.
 *
 * @throws RefoldError `INVALID_DECLARATION`
 */
export function expectDistinctNames(families: readonly NamedFamily[]): void {
  const owners = new Map<string, NamedFamily>();
  for (const family of families) {
    for (const name of [...family.formerNames, family.name]) {
      const other = owners.get(name);
      owners.set(name, family);
      if (other === undefined || other === family) continue;
      const subject = `defineEvents('${family.name}')`;
      if (other.name === family.name)
        throw invalidDeclaration(subject, 'is declared twice. Declare it once and import it where it is used.');
      throw invalidDeclaration(
        subject,
        `'${name}' is ${name === family.name ? 'its name' : 'one of its former names'} and ${name === other.name ? 'the name' : 'a former name'} of the family '${other.name}'. A name belongs to one family. After a rename, declare the family once, under its new name with the old one in 'was', and use it everywhere.`,
      );
    }
  }
}

/** The family that the log keeps under this name. */
export function familyStoredAs<F extends NamedFamily>(families: ReadonlyMap<string, F>, name: string): F | undefined {
  const same = families.get(name);
  if (same?.storedName === name) return same;
  for (const family of families.values()) if (family.storedName === name) return family;
  return undefined;
}

/** Event types of one family. */
interface TypesOfFamily {
  readonly family: string;
  readonly types: readonly string[];
}

/** The same types under all names that the log may hold. */
export function storedFilter(families: Iterable<NamedFamily>, filter: readonly TypesOfFamily[]): TypesOfFamily[] {
  return renamedFilter(families, filter, (names) => names);
}

/** The same types under the names that appends write. They stay the same when a type or a family is renamed. */
export function lastingFilter(families: Iterable<NamedFamily>, filter: readonly TypesOfFamily[]): TypesOfFamily[] {
  return renamedFilter(families, filter, ([first]) => (first === undefined ? [] : [first]));
}

function renamedFilter(
  families: Iterable<NamedFamily>,
  filter: readonly TypesOfFamily[],
  namesOf: (names: readonly string[]) => readonly string[],
): TypesOfFamily[] {
  const declared = [...families];
  return filter.map(({ family: name, types }) => {
    const family = declared.find((one) => one.name === name);
    return {
      family: family?.storedName ?? name,
      types: types.flatMap((type) => namesOf(family?.typeNames[type] ?? [type])),
    };
  });
}

/** Types under names that the log holds, by their declared names. */
export function declaredFilter(families: Iterable<NamedFamily>, filter: readonly TypesOfFamily[]): TypesOfFamily[] {
  const declared = [...families];
  return filter.map(({ family: name, types }) => {
    const family = declared.find((one) => one.storedName === name);
    return {
      family: family?.name ?? name,
      types: [...new Set(types.map((type) => family?.declaredTypes[type] ?? type))],
    };
  });
}

/** Identifies an event's stream, also after a rename: `family/stream`. */
export function streamKey(
  families: readonly NamedFamily[],
  { family: name, streamId }: Pick<RecordedEvent, 'family' | 'streamId'>,
): string {
  return `${families.find((family) => family.name === name)?.storedName ?? name}/${streamId}`;
}
