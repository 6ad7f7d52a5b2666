import { RefoldError } from '../../errors.ts';
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
import type { Queryable } from '../../store/statements/statement.ts';
import { type BoundedCount, boundedCount, countBound } from './application.ts';

/** A dead letter, with the version or the reactor that it is of. */
export interface InspectedLetter extends BrowsedLetter {
  readonly source: LetterSource;
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

/** A page of dead letters, by version or reactor and in the order in which they were stored. */
export async function readLetterPage(
  db: Queryable,
  { of, ...filter }: LetterChoice,
  first: number,
  after: LetterPlace | null,
): Promise<{ readonly letters: readonly InspectedLetter[]; readonly next: LetterPlace | null }> {
  const letters: InspectedLetter[] = [];
  let windows = 0;
  for await (const { source, start } of sourcesFrom(db, of, after)) {
    const size = isEmpty(filter) ? Math.min(letterWindow, first - letters.length + 1) : letterWindow;
    for (let place: bigint | null = start; place !== null; ) {
      const read = await readLetters(db, { source, after: place, size, filter });
      for (const letter of read.letters) {
        if (letters.length === first) return { letters, next: placeAfter(letters) };
        letters.push({ ...letter, source });
      }
      place = read.last;
      if (place !== null && ++windows >= mostWindows) return { letters, next: { of: source.of, after: place } };
    }
  }
  return { letters, next: null };
}

function isEmpty(filter: LetterFilter): boolean {
  return Object.values(filter).every((value) => value === undefined);
}

function placeAfter(letters: readonly InspectedLetter[]): LetterPlace | null {
  const last = letters.at(-1);
  return last ? { of: last.source.of, after: last.number } : null;
}

/** The versions and reactors that have dead letters, from a place on. */
async function* sourcesFrom(
  db: Queryable,
  of: string | undefined,
  after: LetterPlace | null,
): AsyncGenerator<{ readonly source: LetterSource; readonly start: bigint }> {
  const sources = await readLetterSources(db, of);
  const index = after === null ? 0 : sources.findIndex((one) => one.of === after.of);
  // Its last dead letter may be gone since.
  const from = index >= 0 ? index : sources.findIndex((one) => one.of > (after?.of ?? ''));
  if (from < 0) return;
  for (const source of sources.slice(from)) yield { source, start: source.of === after?.of ? after.after : -1n };
}

export interface LetterGroups {
  /** The largest first. */
  readonly groups: readonly (LetterGroup & { readonly of: string | null })[];
  readonly visited: number;
  readonly next: LetterPlace | null;
}

/** Counts dead letters by groups. Visits a bounded number of them. */
export async function readLetterGroups(
  db: Queryable,
  { of, ...filter }: LetterChoice,
  by: readonly (LetterGrouping | 'of')[],
  after: LetterPlace | null,
): Promise<LetterGroups> {
  const fields = by.filter((one) => one !== 'of');
  const byOf = by.includes('of');
  const groups = new Map<string, LetterGroup & { readonly of: string | null }>();
  const sorted = () => [...groups.values()].toSorted((a, b) => b.count - a.count);
  let visited = 0;
  let windows = 0;
  for await (const { source, start } of sourcesFrom(db, of, after)) {
    for (let place: bigint | null = start; place !== null; ) {
      const counted = await countLetters(db, { source, after: place, size: letterWindow, filter }, fields);
      visited += counted.visited;
      for (const group of counted.groups) add(groups, { ...group, of: byOf ? source.of : null });
      place = counted.last;
      if (place !== null && ++windows >= mostWindows)
        return { groups: sorted(), visited, next: { of: source.of, after: place } };
    }
  }
  return { groups: sorted(), visited, next: null };
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

/** One dead letter. Null if it is gone. @throws RefoldError `BAD_USER_INPUT` */
export async function readLetter(db: Queryable, id: string): Promise<InspectedLetter | null> {
  const { of, number } = parseLetterId(id);
  const [source] = await readLetterSources(db, of);
  const [letter] = source ? await readLettersAt(db, source, [number]) : [];
  return source && letter ? { ...letter, source } : null;
}

/** How many later dead letters wait behind one. */
export async function blockedBehind(db: Queryable, letter: InspectedLetter): Promise<BoundedCount> {
  return boundedCount(await countBlocked(db, letter.source, letter, countBound + 1));
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
