import { invalidDeclaration } from '../../errors.ts';
import { similar } from '../../events/closest.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { storedFilter } from '../../events/event-names.ts';
import type { EventFilter, Projection } from '../../projections/projection/projection.ts';
import { type LoggedType, readLoggedTypes } from '../../store/log/logged-types.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readVersionsOf } from '../../store/registry/all-registries.ts';
import { declaredAt, recordTransition } from '../../store/registry/transitions.ts';
import { logOf, type Queryable } from '../../store/statements/statement.ts';
import type { TransitionReason } from './expect-version.ts';

/**
 * Compares the names in the log with the declared ones.
 *
 * @returns a sentence that names the event types which the log holds and nothing declares; undefined if there are none
 * @throws RefoldError `INVALID_DECLARATION` if the log holds one family under two of its names
 */
export async function checkLoggedNames(db: Database, families: readonly EventFamily[]): Promise<string | undefined> {
  const logged = await readLoggedTypes(db);
  for (const family of families) expectStoredName(family, logged);
  const undeclared = undeclaredAmong(logged, families);
  const [first] = undeclared;
  if (!first) return undefined;
  return `The log holds events that this program does not declare, so nothing here reads them: ${listed(undeclared)}. If a name was changed, declare the former one: ${wayOut(first, families)}. Otherwise ignore this.`;
}

/** Streams are known by the family's name in the log. Under a second name, they would be other streams. */
function expectStoredName({ name, formerNames, storedName }: EventFamily, logged: readonly LoggedType[]): void {
  const held = new Set(logged.map(({ family }) => family));
  const other = [...formerNames, name].find((one) => one !== storedName && held.has(one));
  if (other === undefined) return;
  const what = held.has(storedName)
    ? `the log holds streams of '${storedName}' and of '${other}'. They are different streams, also where their ids are equal, so one family can't have both. Declare them as two families; a projection can read several.`
    : `the log holds streams of '${other}' and none of '${storedName}', the first name in 'was'. Remove the names before '${other}' from 'was'.`;
  throw invalidDeclaration(`defineEvents('${name}')`, what);
}

/**
 * Holds a version at ready if it reads none of the events that the log held when the version was declared, while the log holds events under
 * names that nothing declares: a name was probably changed. Returns whether it does.
 */
export async function holdForUndeclaredEvents(
  tx: Queryable,
  projection: Projection,
  families: readonly EventFamily[],
  { actor }: TransitionReason,
): Promise<boolean> {
  const { id, name, version } = projection;
  const before = await declaredAt(tx, name, version);
  const logged = before === undefined ? [] : await loggedBefore(tx, families, before);
  const handled = storedFilter(projection.families, projection.filter);
  if (logged.some(({ family, type }) => handled.some((one) => one.family === family && one.types.includes(type))))
    return false;
  const unread = undeclaredAmong(logged, families);
  const own = unread.filter(({ family }) => handled.some((one) => one.family === family));
  // Of other families, those which this projection seems to have read under an earlier name.
  const isAlike = ({ type }: LoggedType) => handled.some(({ types }) => types.includes(type));
  const suspects = own.length > 0 ? own : (await replaces(tx, projection)) ? unread : unread.filter(isAlike);
  const [first] = suspects;
  if (!first) return false;
  const heldReason = `It reads none of the events that the log held when it was declared, and the log holds ${listed(suspects)}, which nothing here declares. If a name was changed, declare the former one, ${wayOut(first, families)}, and run 'refold rebuild ${id}'. 'refold activate ${id}' activates it as it is.`;
  const held = { heldReason, heldBy: 'verification', actor, reason: heldReason } as const;
  await recordTransition(tx, { name, version, from: 'ready', to: 'ready', ...held });
  return true;
}

// Versions that are declared together are compared with the same part of the log, whose types take some ten thousand events to find.
const lastLogged = new WeakMap<
  readonly EventFamily[],
  { readonly before: string; readonly types: readonly LoggedType[] }
>();

/** The types that the log held at a time. */
async function loggedBefore(tx: Queryable, families: readonly EventFamily[], before: string) {
  const last = lastLogged.get(families);
  if (last?.before === before) return last.types;
  const types = await readLoggedTypes(logOf(tx), before);
  lastLogged.set(families, { before, types });
  return types;
}

/**
 * A warning for a registered version that now reads a type under a name which it did not read before, and which the log holds: somebody wrote
 * such events before the rename was declared.
 *
 * @param before what it read before
 */
export async function unreadNames(
  tx: Queryable,
  projection: Projection,
  before: readonly EventFilter[],
): Promise<string | undefined> {
  const { id } = projection;
  const names = storedFilter(projection.families, projection.filter);
  const isRead = (filter: readonly EventFilter[], { family, type }: LoggedType) =>
    filter.some((one) => one.family === family && one.types.includes(type));
  const added = names.flatMap(({ family, types }) =>
    types.map((type) => ({ family, type })).filter((one) => !isRead(before, one)),
  );
  if (before.length === 0 || added.length === 0) return undefined;
  const unread = (await readLoggedTypes(logOf(tx))).filter((one) => isRead(names, one) && !isRead(before, one));
  if (unread.length === 0) return undefined;
  return `${id}: it now reads ${listed(unread)}, too. Its rows may leave out such events of the past: 'refold rebuild ${id}' builds them from all events.`;
}

/** Whether the version would take over from one that has folded events. */
async function replaces(tx: Queryable, { name, version }: Projection): Promise<boolean> {
  return (await readVersionsOf(tx, name)).some(
    (one) => one.version < version && one.state === 'active' && one.eventsFolded > 0n,
  );
}

function undeclaredAmong(logged: readonly LoggedType[], families: readonly EventFamily[]): LoggedType[] {
  const byName = new Map(families.map((family) => [family.storedName, family]));
  return logged.filter(({ family, type }) => byName.get(family)?.declaredTypes[type] === undefined);
}

// Enough to recognize what was renamed; a log of another application may hold hundreds.
const mostListed = 8;

function listed(types: readonly LoggedType[]): string {
  const names = types.slice(0, mostListed).map(({ family, type }) => `${family}.${type}`);
  return types.length > mostListed ? `${names.join(', ')} and ${types.length - mostListed} more` : names.join(', ');
}

/** The declaration that would make the type known. */
function wayOut({ family: stored, type }: LoggedType, families: readonly EventFamily[]): string {
  const family = families.find(({ storedName }) => storedName === stored);
  if (family) {
    const now = similar(type, family.types) ?? 'NewName';
    return `defineEvents('${family.name}', …, { types: { ${now}: { was: ['${type}'] } } })`;
  }
  const names = families.map(({ name }) => name);
  return `defineEvents('${similar(stored, names) ?? 'new_name'}', …, { was: ['${stored}'] })`;
}
