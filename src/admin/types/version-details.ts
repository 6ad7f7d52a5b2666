import { RefoldError } from '../../errors.ts';
import type { VersionSurroundings } from '../../runtime/actions/possible-actions.ts';
import { countBound, type InspectedApplication } from '../../runtime/inspection/application.ts';
import { type AuditFilter, type InspectedEntry, readAuditPage } from '../../runtime/inspection/audit-log.ts';
import type { InspectedVersion, Overview } from '../../runtime/inspection/overview.ts';
import { listSnapshots } from '../../runtime/rebuilds/table-snapshots.ts';
import { readDiscardPage } from '../../store/browsing/browse-discards.ts';
import { readLagTrend, readRuns } from '../../store/browsing/browse-runs.ts';
import { readPins } from '../../store/browsing/browse-usage.ts';
import { readTableFacts } from '../../store/browsing/table-facts.ts';
import { readVersion } from '../../store/registry/registry.ts';
import { readShadows } from '../../store/registry/shadows.ts';
import { sqlType } from '../../store/tables/read-table.ts';
import { cursor, daysOf, isAuditPlace, isText, pageSize, placeAt } from './cursors.ts';

type After = string | null | undefined;
type First = number | null | undefined;

export async function auditPage(
  application: InspectedApplication,
  filter: AuditFilter,
  first: First,
  after: After,
): Promise<{
  readonly items: readonly InspectedEntry[];
  readonly next: string | null;
  readonly away: readonly string[];
}> {
  const place = placeAt(after, isAuditPlace);
  const { entries, next, away } = await readAuditPage(application, filter, pageSize(first, 50), place);
  return { items: entries, next: next && cursor(next), away };
}

export function historyOf(application: InspectedApplication, { status }: InspectedVersion, first: First, after: After) {
  return auditPage(application, { projection: status.name, version: status.version }, first, after);
}

export function historyOfReactor(application: InspectedApplication, reactor: string, first: First, after: After) {
  return auditPage(application, { reactor }, first, after);
}

export async function runsOf(
  { stores }: InspectedApplication,
  { status }: InspectedVersion,
  first: First,
  after: After,
) {
  const { name, version } = status;
  const { db } = stores.of(status);
  const limit = pageSize(first, 50);
  const items = await readRuns(db, { name, version, before: placeAt(after, isText), limit });
  const last = items.at(-1);
  return { items, next: last && items.length === limit ? cursor(last.startedAt) : null };
}

const mostMinutes = 7 * 24 * 60;
const mostPoints = 120;

export function lagTrendOf(
  { stores }: InspectedApplication,
  { status }: InspectedVersion,
  minutes: number | null | undefined,
  points: number | null | undefined,
) {
  const [long, many] = [minutes ?? 30, points ?? 30];
  if (long < 1 || long > mostMinutes || many < 2 || many > mostPoints)
    throw new RefoldError(
      'BAD_USER_INPUT',
      `A trend is of 1 to ${mostMinutes} minutes in 2 to ${mostPoints} points, found ${long} and ${many}.`,
    );
  const { name, version } = status;
  return readLagTrend(stores.of(status).db, { name, version, minutes: long, points: many });
}

export async function shadowOf({ stores }: InspectedApplication, { status }: InspectedVersion) {
  return (await readShadows(stores.of(status).db, status.name, status.version))[0] ?? null;
}

/** What else decides which actions it offers. */
export async function surroundingsOf(
  application: InspectedApplication,
  { versions }: Overview,
  version: InspectedVersion,
): Promise<VersionSurroundings> {
  const { name, version: number } = version.status;
  const active = versions.filter(({ status }) => status.name === name && status.state === 'active');
  const shadow = await shadowOf(application, version);
  const { db } = application.stores.of(version.status);
  const discards = await readDiscardPage(db, { name, version: number, after: null, limit: 1 });
  return {
    isDeclared: version.declared !== undefined,
    isAboveActive:
      active.length > 1 && active.every(({ status }) => status.version <= number) && version.status.state === 'active',
    isShadow: shadow !== null && shadow.stoppedAt === null,
    hasDiscards: discards.length > 0,
  };
}

export async function snapshotsOf({ stores }: InspectedApplication, { status, declared }: InspectedVersion) {
  const snapshots = await listSnapshots(stores.of(status).db, status.name, status.version, countBound);
  return snapshots.map((snapshot) => ({
    snapshot,
    isOfThisCode: snapshot.codeFingerprint === declared?.codeFingerprint,
  }));
}

export async function builtByThisCode({ stores }: InspectedApplication, { status, declared }: InspectedVersion) {
  if (!declared) return null;
  const found = await readVersion(stores.of(status).db, status);
  return found ? found.codeFingerprint === declared.codeFingerprint : null;
}

export async function tableOf({ stores }: InspectedApplication, { status }: InspectedVersion) {
  return (await readTableFacts(stores.of(status).db, status.name, status.version)) ?? null;
}

export function columnsOf({ declared }: InspectedVersion) {
  return Object.entries(declared?.columns ?? {}).map(([name, column]) => ({
    name,
    type: sqlType(column),
    isKey: declared?.keyColumns.includes(name) ?? false,
    isHidden: declared?.hidden.has(name) ?? false,
  }));
}

/** Which fields clients use is with the log, whatever store has the version. */
export function pinsOf({ db }: InspectedApplication, { id }: InspectedVersion, days: number | null | undefined) {
  return readPins(db, id, daysOf(days));
}
