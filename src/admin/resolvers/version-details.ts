import { RefoldError } from '../../errors.ts';
import type { VersionSurroundings } from '../../runtime/actions/possible-actions.ts';
import { countBound, type InspectedApplication } from '../../runtime/inspection/application.ts';
import type { InspectedVersion, Overview } from '../../runtime/inspection/overview.ts';
import { listSnapshots } from '../../runtime/rebuilds/table-snapshots.ts';
import { readDiscardPage } from '../../store/browsing/browse-discards.ts';
import { readLagTrend, readRuns } from '../../store/browsing/browse-runs.ts';
import { readVersion } from '../../store/registry/registry.ts';
import { readShadows } from '../../store/registry/shadows.ts';
import { sqlType } from '../../store/tables/read-table.ts';
import type { VersionLagTrendArgs } from '../schema/sdl.generated.ts';
import { cursor, isText, type Page, pageSize, placeAt } from './cursors.ts';

export async function runsOf({ stores }: InspectedApplication, one: InspectedVersion, { first, after }: Page) {
  const { name, version } = one;
  const { db } = stores.of(one);
  const limit = pageSize(first, 50);
  const items = await readRuns(db, { name, version, before: placeAt(after, isText), limit });
  const last = items.at(-1);
  return { items, next: last && items.length === limit ? cursor(last.startedAt) : null };
}

const mostMinutes = 7 * 24 * 60;
const mostPoints = 120;

export function lagTrendOf(
  { stores }: InspectedApplication,
  one: InspectedVersion,
  { minutes, points }: VersionLagTrendArgs,
) {
  const [long, many] = [minutes ?? 30, points ?? 30];
  if (long < 1 || long > mostMinutes || many < 2 || many > mostPoints)
    throw new RefoldError(
      'BAD_USER_INPUT',
      `A trend is of 1 to ${mostMinutes} minutes in 2 to ${mostPoints} points, found ${long} and ${many}.`,
    );
  const { name, version } = one;
  return readLagTrend(stores.of(one).db, { name, version, minutes: long, points: many });
}

export async function shadowOf({ stores }: InspectedApplication, one: InspectedVersion) {
  return (await readShadows(stores.of(one).db, one.name, one.version))[0] ?? null;
}

/** What else decides which actions it offers. */
export async function surroundingsOf(
  application: InspectedApplication,
  { versions }: Overview,
  version: InspectedVersion,
): Promise<VersionSurroundings> {
  const { name, version: number } = version;
  const active = versions.filter((one) => one.name === name && one.state === 'active');
  const shadow = await shadowOf(application, version);
  const { db } = application.stores.of(version);
  const discards = await readDiscardPage(db, { name, version: number, after: null, limit: 1 });
  return {
    isDeclared: version.declared !== undefined,
    isAboveActive: active.length > 1 && active.every((one) => one.version <= number) && version.state === 'active',
    isShadow: shadow !== null && shadow.stoppedAt === null,
    hasDiscards: discards.length > 0,
  };
}

export async function snapshotsOf({ stores }: InspectedApplication, one: InspectedVersion) {
  const snapshots = await listSnapshots(stores.of(one).db, one.name, one.version, countBound);
  return snapshots.map((snapshot) => ({
    ...snapshot,
    position: snapshot.checkpoint,
    isOfThisCode: snapshot.codeFingerprint === one.declared?.codeFingerprint,
  }));
}

export async function builtByThisCode({ stores }: InspectedApplication, one: InspectedVersion) {
  if (!one.declared) return null;
  const found = await readVersion(stores.of(one).db, one);
  return found ? found.codeFingerprint === one.declared.codeFingerprint : null;
}

export function columnsOf({ declared }: InspectedVersion) {
  return Object.entries(declared?.columns ?? {}).map(([name, column]) => ({
    name,
    type: sqlType(column),
    isKey: declared?.keyColumns.includes(name) ?? false,
    isHidden: declared?.hidden.has(name) ?? false,
  }));
}
