import { type AuditEntry, type AuditFilter, type AuditLog, readAudit } from '../../store/browsing/browse-audit.ts';
import type { Queryable } from '../../store/statements/statement.ts';

export type { AuditEntry, AuditFilter };

/** Where a page of the audit log begins: before these numbers of the two logs. Null: that log has no more. */
export interface AuditPlace {
  readonly versions: bigint | 'first' | null;
  readonly reactors: bigint | 'first' | null;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Null if there are no more. */
  readonly next: AuditPlace | null;
}

// Entries that one statement visits, and statements for one page.
const windowSize = 1000;
const mostWindows = 20;

interface Part {
  readonly log: AuditLog;
  queue: AuditEntry[];
  /** Before which number to read on; null: nothing is left. */
  before: bigint | null;
  hasMore: boolean;
}

/** A page of what was done with versions and reactors, the latest first. */
export async function readAuditPage(
  db: Queryable,
  filter: AuditFilter,
  first: number,
  after: AuditPlace | null,
): Promise<AuditPage> {
  const parts = [part('versions', filter, after?.versions), part('reactors', filter, after?.reactors)];
  const entries: AuditEntry[] = [];
  const size = Math.max(first, hasConditions(filter) ? windowSize : first);
  for (let windows = 0; entries.length < first; ) {
    for (const one of parts) {
      while (one.queue.length === 0 && one.hasMore && windows < mostWindows) {
        windows++;
        const { entries: found, last } = await readAudit(db, one.log, { before: one.before, size, filter });
        one.queue = found;
        one.hasMore = last !== null;
        if (last !== null) one.before = last;
      }
    }
    // A log whose next entry is not known could have a later one.
    if (parts.some(({ queue, hasMore }) => queue.length === 0 && hasMore)) break;
    const [latest] = parts.filter(({ queue }) => queue.length > 0).toSorted((a, b) => later(a.queue[0], b.queue[0]));
    const entry = latest?.queue.shift();
    if (!entry) break;
    entries.push(entry);
  }
  const [versions, reactors] = parts.map((one) => placeOf(one, entries)) as [
    bigint | 'first' | null,
    bigint | 'first' | null,
  ]; // of two
  return { entries, next: versions === null && reactors === null ? null : { versions, reactors } };
}

function part(log: AuditLog, filter: AuditFilter, place: bigint | 'first' | null | undefined): Part {
  const isWanted =
    log === 'versions' ? filter.reactor === undefined : filter.projection === undefined && filter.version === undefined;
  return {
    log,
    queue: [],
    before: typeof place === 'bigint' ? place : null,
    hasMore: isWanted && place !== null,
  };
}

function hasConditions({ actor, since, until }: AuditFilter): boolean {
  return actor !== undefined || since !== undefined || until !== undefined;
}

function later(a: AuditEntry | undefined, b: AuditEntry | undefined): number {
  const [x, y] = [a?.at ?? '', b?.at ?? ''];
  return x === y ? 0 : x < y ? 1 : -1;
}

/** Before which number the next page of a log begins. Entries that were read and are not on the page come again. */
function placeOf({ log, queue, hasMore, before }: Part, entries: readonly AuditEntry[]): bigint | 'first' | null {
  const [next] = queue;
  if (next) return next.number + 1n;
  if (!hasMore) return null;
  const lowest = entries.findLast(({ isReactor }) => isReactor === (log === 'reactors'))?.number;
  const reached = [before, lowest].filter((one) => one != null);
  return reached.length === 0 ? 'first' : reached.reduce((a, b) => (a < b ? a : b));
}

const csvColumns = ['at', 'of', 'operation', 'from', 'to', 'fromPosition', 'toPosition', 'actor', 'reason'] as const;

/** The audit log as CSV (RFC 4180), the latest first: a head line, then one text for each page. */
export async function* auditAsCsv(db: Queryable, filter: AuditFilter): AsyncGenerator<string> {
  yield `${csvColumns.join(',')}\r\n`;
  for (let after: AuditPlace | null = null; ; ) {
    const { entries, next }: AuditPage = await readAuditPage(db, filter, windowSize, after);
    if (entries.length > 0)
      yield entries.map((entry) => `${csvColumns.map((name) => csvValue(entry[name])).join(',')}\r\n`).join('');
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
