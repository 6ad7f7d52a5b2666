import { RefoldError } from '../../errors.ts';
import { defaultStore } from '../../projections/projection/projection.ts';
import { type AuditEntry, type AuditFilter, type AuditLog, readAudit } from '../../store/browsing/browse-audit.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import type { ReadStore } from '../../store/read-store.ts';
import { awayText, type InspectedApplication } from './application.ts';

export type { AuditFilter };

/** An entry, and the store that has it: that of the version, or of the log for a reactor. */
export interface InspectedEntry extends AuditEntry {
  readonly store: string;
}

/** Before which number of a log a page begins. */
type Place = bigint | 'first';

/** Where a page of the audit log begins. A log that is missing has no more. */
export interface AuditPlace {
  /** In the log of versions of each store, by its name. */
  readonly versions: Readonly<Record<string, Place>>;
  /** In the log of reactors; null if it has no more. */
  readonly reactors: Place | null;
  /** The stores that are left out since an earlier page, because they did not respond. */
  readonly away: readonly string[];
}

export interface AuditPage {
  readonly entries: readonly InspectedEntry[];
  /** Null if there are no more. */
  readonly next: AuditPlace | null;
  /** The stores that are left out, because they do not respond. */
  readonly away: readonly string[];
}

// Entries that one statement visits, and statements for one page.
const windowSize = 1000;
const mostWindows = 20;

type Audited = Pick<InspectedApplication, 'stores'>;

interface Part {
  readonly log: AuditLog;
  readonly store: ReadStore;
  queue: InspectedEntry[];
  /** Before which number to read on; null: from the end of the log. */
  before: bigint | null;
  hasMore: boolean;
  isAway: boolean;
}

/** A page of what was done with versions and reactors, in all stores, the latest first. */
export async function readAuditPage(
  { stores }: Audited,
  filter: AuditFilter,
  first: number,
  after: AuditPlace | null,
): Promise<AuditPage> {
  const parts = partsOf(stores, filter, after);
  const entries: InspectedEntry[] = [];
  const size = Math.max(first, hasConditions(filter) ? windowSize : first);
  for (let windows = 0; entries.length < first; ) {
    for (const one of parts) {
      while (one.queue.length === 0 && one.hasMore && windows < mostWindows) {
        windows++;
        await readWindow(one, size, filter);
      }
    }
    // A log whose next entry is not known could have a later one.
    if (parts.some(({ queue, hasMore }) => queue.length === 0 && hasMore)) break;
    const [latest] = parts.filter(({ queue }) => queue.length > 0).toSorted((a, b) => later(a.queue[0], b.queue[0]));
    const entry = latest?.queue.shift();
    if (!entry) break;
    entries.push(entry);
  }
  const away = [
    ...new Set([...(after?.away ?? []), ...parts.filter((one) => one.isAway).map(({ store }) => store.name)]),
  ];
  return { entries, next: nextOf(parts, entries, away), away };
}

function partsOf({ home, apart, silent }: Audited['stores'], filter: AuditFilter, after: AuditPlace | null): Part[] {
  const known = silent?.() ?? new Set();
  const part = (log: AuditLog, store: ReadStore, isWanted: boolean, place: Place | null | undefined): Part => {
    const isAway = isWanted && place !== null && known.has(store.name);
    const before = typeof place === 'bigint' ? place : null;
    return { log, store, queue: [], before, hasMore: isWanted && place !== null && !isAway, isAway };
  };
  const ofVersions = filter.reactor === undefined;
  const ofReactors = filter.projection === undefined && filter.version === undefined;
  return [
    ...[home, ...apart].map((store) =>
      part('versions', store, ofVersions, after === null ? 'first' : (after.versions[store.name] ?? null)),
    ),
    part('reactors', home, ofReactors, after === null ? 'first' : after.reactors),
  ];
}

/** A store apart from the log that does not respond is left out. */
async function readWindow(one: Part, size: number, filter: AuditFilter): Promise<void> {
  const { log, store, before } = one;
  try {
    const { entries, last } = await readAudit(store.db, log, { before, size, filter });
    one.queue = entries.map((entry) => ({ ...entry, store: store.name }));
    one.hasMore = last !== null;
    if (last !== null) one.before = last;
  } catch (error) {
    if (store.name === defaultStore || !isOutage(error)) throw error;
    one.hasMore = false;
    one.isAway = true;
  }
}

function hasConditions({ actor, since, until }: AuditFilter): boolean {
  return actor !== undefined || since !== undefined || until !== undefined;
}

function later(a: AuditEntry | undefined, b: AuditEntry | undefined): number {
  const [x, y] = [a?.at ?? '', b?.at ?? ''];
  return x === y ? 0 : x < y ? 1 : -1;
}

function nextOf(
  parts: readonly Part[],
  entries: readonly InspectedEntry[],
  away: readonly string[],
): AuditPlace | null {
  const places = parts.flatMap((one) => {
    const place = placeOf(one, entries);
    return place === null ? [] : [{ ...one, place }];
  });
  if (places.length === 0) return null;
  const versions = places
    .filter(({ log }) => log === 'versions')
    .map(({ store, place }) => [store.name, place] as const);
  const reactors = places.find(({ log }) => log === 'reactors')?.place ?? null;
  return { versions: Object.fromEntries(versions), reactors, away };
}

/** Before which number the next page of a log begins. Entries that were read and are not on the page come again. */
function placeOf({ log, store, queue, hasMore, before }: Part, entries: readonly InspectedEntry[]): Place | null {
  const [next] = queue;
  if (next) return next.number + 1n;
  if (!hasMore) return null;
  const isOwn = (entry: InspectedEntry) => entry.isReactor === (log === 'reactors') && entry.store === store.name;
  const reached = [before, entries.findLast(isOwn)?.number].filter((one) => one != null);
  return reached.length === 0 ? 'first' : reached.reduce((a, b) => (a < b ? a : b));
}

const csvColumns = [
  'at',
  'of',
  'operation',
  'from',
  'to',
  'fromPosition',
  'toPosition',
  'actor',
  'reason',
  'store',
] as const;

/**
 * The audit log as CSV (RFC 4180), the latest first: one text for each page, the first one with a head line.
 *
 * @throws RefoldError `DATABASE_UNAVAILABLE` if a store does not respond, because a file can't say that it is not complete
 */
export async function* auditAsCsv(audited: Audited, filter: AuditFilter): AsyncGenerator<string> {
  let head = `${csvColumns.join(',')}\r\n`;
  for (let after: AuditPlace | null = null; ; ) {
    const { entries, next, away }: AuditPage = await readAuditPage(audited, filter, windowSize, after);
    if (away.length > 0)
      throw new RefoldError('DATABASE_UNAVAILABLE', `${awayText(away)}: the audit log would not be complete.`);
    yield head + entries.map((entry) => `${csvColumns.map((name) => csvValue(entry[name])).join(',')}\r\n`).join('');
    head = '';
    if (next === null) return;
    after = next;
  }
}

/** Spreadsheets run texts that begin like a formula, so such a text gets an apostrophe. */
function csvValue(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
