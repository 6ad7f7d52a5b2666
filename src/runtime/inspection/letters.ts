import { RefoldError } from '../../errors.ts';
import { type RowKey, storedIn } from '../../projections/projection/projection.ts';
import {
  type BrowsedLetter,
  countBlocked,
  countLetters,
  type LetterFilter,
  type LetterGroup,
  type LetterGrouping,
  type LetterSource,
  readLetterSources,
  readLetters,
  readLettersAt,
} from '../../store/browsing/browse-letters.ts';
import type { Database } from '../../store/postgres/database.ts';
import { type FoundInStores, readEachStore } from '../../store/read-store.ts';
import { byVersion, storedOnce } from '../../store/registry/stored-once.ts';
import { holdersOfValues } from '../dead-letters/value-holders.ts';
import { versionsById } from '../versions/registries.ts';
import {
  type BoundedCount,
  boundedCount,
  countBound,
  foundOrAway,
  type InspectedApplication,
  versionName,
} from './application.ts';

/** The dead letters of a version or a reactor, and the database that has them. */
export interface InspectedSource extends LetterSource {
  readonly db: Database;
}

/** A dead letter, with the version or the reactor that it is of. */
export interface InspectedLetter extends BrowsedLetter {
  readonly source: InspectedSource;
}

/** Where a page begins: after this number of this version or reactor. */
export interface LetterPlace {
  readonly of: string;
  readonly after: bigint;
}

export interface LetterChoice extends LetterFilter {
  /** The version or the reactor. @default all */
  readonly of?: string | undefined;
}

// Dead letters that one statement visits, and that one page visits in total.
export const letterWindow = 5000;
const mostWindows = 20;

export interface LetterPage {
  readonly letters: readonly InspectedLetter[];
  readonly next: LetterPlace | null;
  /** The stores that are left out, because they do not respond. */
  readonly away: readonly string[];
}

type Inspected = Pick<InspectedApplication, 'stores' | 'find'>;

/** A page of dead letters, by version or reactor and in the order in which they were stored. */
export async function readLetterPage(
  application: Inspected,
  { of, ...filter }: LetterChoice,
  first: number,
  after: LetterPlace | null,
): Promise<LetterPage> {
  const letters: InspectedLetter[] = [];
  const { found, away } = await letterSources(application, of);
  let windows = 0;
  for (const { source, start } of sourcesFrom(found, after)) {
    const size = isEmpty(filter) ? Math.min(letterWindow, first - letters.length + 1) : letterWindow;
    for (let place: bigint | null = start; place !== null; ) {
      const read = await readLetters(source.db, { source, after: place, size, filter });
      for (const letter of read.letters) {
        if (letters.length === first) return { letters, next: placeAfter(letters), away };
        letters.push({ ...letter, source });
      }
      place = read.last;
      if (place !== null && ++windows >= mostWindows) return { letters, next: { of: source.of, after: place }, away };
    }
  }
  return { letters, next: null, away };
}

function isEmpty(filter: LetterFilter): boolean {
  return Object.values(filter).every((value) => value === undefined);
}

function placeAfter(letters: readonly InspectedLetter[]): LetterPlace | null {
  const last = letters.at(-1);
  return last ? { of: last.source.of, after: last.number } : null;
}

/** The versions and reactors that have dead letters, in all stores. */
export async function letterSources({ stores, find }: Inspected, of?: string): Promise<FoundInStores<InspectedSource>> {
  const { found, away } = await readEachStore(stores, async ({ name: store, db }) =>
    (await readLetterSources(db, of)).map((source) => ({ ...source, store, db })),
  );
  if (stores.apart.length === 0) return { found: found.flat(), away };
  const current = versionsById(storedOnce(await find.versions()));
  const sources = found.flat().filter((one) => one.isReactor || current.get(one.of)?.store === one.store);
  return { found: sources.toSorted(versionsFirst), away };
}

function versionsFirst(a: LetterSource, b: LetterSource): number {
  if (a.isReactor || b.isReactor) return a.isReactor === b.isReactor ? (a.of < b.of ? -1 : 1) : a.isReactor ? 1 : -1;
  return byVersion(versionName(a.of), versionName(b.of));
}

/** The sources from a place on. */
function sourcesFrom(
  sources: readonly InspectedSource[],
  after: LetterPlace | null,
): { readonly source: InspectedSource; readonly start: bigint }[] {
  const index = after === null ? 0 : sources.findIndex((one) => one.of === after.of);
  // Its last dead letter may be gone since.
  const from = index >= 0 ? index : sources.findIndex((one) => one.of > (after?.of ?? ''));
  if (from < 0) return [];
  return sources.slice(from).map((source) => ({ source, start: source.of === after?.of ? after.after : -1n }));
}

export interface LetterGroups {
  /** The largest first. */
  readonly groups: readonly (LetterGroup & { readonly of: string | null })[];
  readonly visited: number;
  readonly next: LetterPlace | null;
  /** The stores that are left out, because they do not respond. */
  readonly away: readonly string[];
}

/** Counts dead letters by groups. Visits a bounded number of them. */
export async function readLetterGroups(
  application: Inspected,
  { of, ...filter }: LetterChoice,
  by: readonly (LetterGrouping | 'of')[],
  after: LetterPlace | null,
): Promise<LetterGroups> {
  const fields = by.filter((one) => one !== 'of');
  const byOf = by.includes('of');
  const groups = new Map<string, LetterGroup & { readonly of: string | null }>();
  const sorted = () => [...groups.values()].toSorted((a, b) => b.count - a.count);
  const { found, away } = await letterSources(application, of);
  let visited = 0;
  let windows = 0;
  for (const { source, start } of sourcesFrom(found, after)) {
    for (let place: bigint | null = start; place !== null; ) {
      const counted = await countLetters(source.db, { source, after: place, size: letterWindow, filter }, fields);
      visited += counted.visited;
      for (const group of counted.groups) add(groups, { ...group, of: byOf ? source.of : null });
      place = counted.last;
      if (place !== null && ++windows >= mostWindows)
        return { groups: sorted(), visited, next: { of: source.of, after: place }, away };
    }
  }
  return { groups: sorted(), visited, next: null, away };
}

function add(
  groups: Map<string, LetterGroup & { readonly of: string | null }>,
  group: LetterGroup & { of: string | null },
) {
  const key = JSON.stringify([group.of, group.error, group.stack, group.eventType, group.streamId]);
  const known = groups.get(key);
  groups.set(
    key,
    known
      ? {
          ...known,
          count: known.count + group.count,
          waiting: known.waiting + group.waiting,
          firstPosition: known.firstPosition < group.firstPosition ? known.firstPosition : group.firstPosition,
          lastAt: known.lastAt > group.lastAt ? known.lastAt : group.lastAt,
        }
      : group,
  );
}

/** One dead letter. Null if it is gone. @throws RefoldError `BAD_USER_INPUT`, `DATABASE_UNAVAILABLE` */
export async function readLetter(application: Inspected, id: string): Promise<InspectedLetter | null> {
  const { of, number } = parseLetterId(id);
  const { found, away } = await letterSources(application, of);
  const source = foundOrAway(found[0], `dead letters of ${of}`, away);
  const [letter] = source ? await readLettersAt(source.db, source, [number]) : [];
  return source && letter ? { ...letter, source } : null;
}

/** How many later dead letters wait behind one. */
export async function blockedBehind(letter: InspectedLetter): Promise<BoundedCount> {
  const { source } = letter;
  return boundedCount(await countBlocked(source.db, source, letter, countBound + 1));
}

/**
 * The rows that have the unique values which each of these dead letters claims, as they are now; null for a reactor, and for a version that this
 * process does not declare.
 */
export async function readTakenBy(
  { config, log }: Pick<InspectedApplication, 'config' | 'log'>,
  letters: readonly InspectedLetter[],
): Promise<(readonly RowKey[] | null)[]> {
  const found = new Map<InspectedLetter, readonly RowKey[]>();
  for (const [source, ofSource] of Map.groupBy(letters, (letter) => letter.source)) {
    const declared = config.projections.find(({ id }) => id === source.of);
    if (!declared) continue;
    const { readSchema } = config.database;
    const options = { db: source.db, log, readSchema, projection: storedIn(declared, source.place) };
    const holders = await holdersOfValues(options, ofSource);
    for (const letter of ofSource) found.set(letter, holders.get(letter.position) ?? []);
  }
  return letters.map((letter) => found.get(letter) ?? null);
}

/** The opaque name of a dead letter. */
export function letterId({ source, number }: Pick<InspectedLetter, 'source' | 'number'>): string {
  return `${source.of}:${number}`;
}

/** @throws RefoldError `BAD_USER_INPUT` */
export function parseLetterId(id: string): { readonly of: string; readonly number: bigint } {
  const [, of, number] = /^([a-z][a-z0-9_]*(?:@\d{1,9})?):(\d{1,18})$/.exec(id) ?? [];
  if (of !== undefined && number !== undefined) return { of, number: BigInt(number) };
  throw new RefoldError('BAD_USER_INPUT', `'${id.slice(0, 80)}' does not name a dead letter.`);
}
