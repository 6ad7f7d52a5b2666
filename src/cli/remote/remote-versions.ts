import { bytes, integer } from '../shared/format.ts';
import { warnOfStoresAway } from '../shared/store-texts.ts';
import { textTable } from '../shared/text-table.ts';
import { openRemote, type RemoteApi } from './remote-api.ts';
import type { RemoteArguments } from './remote-arguments.ts';
import { itemsOf, type RemotePage } from './remote-pages.ts';

interface AuditEntry {
  readonly at: string;
  readonly of: string;
  readonly operation: string;
  readonly fromPosition: string | null;
  readonly toPosition: string | null;
  readonly actor: string;
  readonly reason: string;
}

const auditQuery = `query Audit($filter: AuditFilter, $first: Int, $after: String) {
  auditLog(filter: $filter, first: $first, after: $after) {
    items { at of operation fromPosition toPosition actor reason }
    next
    storesAway
  }
}`;

/** Which entries of the audit log to print. */
export interface AuditFilter {
  readonly projection?: string;
  readonly version?: number;
  readonly reactor?: string;
}

/** Prints what was done with versions, or with a reactor: the latest entries, the latest last. */
export async function remoteHistory(args: RemoteArguments, filter: AuditFilter, limit: number): Promise<void> {
  const api = openRemote(args.remote);
  const { items, storesAway } = await itemsOf(async (after) => {
    const variables = { filter, first: Math.min(limit, 1000), after };
    return (await api.query<{ auditLog: RemotePage<AuditEntry> }>(auditQuery, variables)).auditLog;
  }, limit);
  warnOfStoresAway(storesAway);
  // Without a filter, the API also has what was done with reactors.
  const latest = items.toReversed();
  if (args.json) return console.log(JSON.stringify(latest, null, 2));
  if (latest.length === 0) return console.log('Nothing is recorded.');
  console.log(
    textTable(
      ['at', 'of', 'step', 'positions', 'actor', 'reason'],
      latest.map(({ at, of, operation, fromPosition, toPosition, actor, reason }) => [
        at,
        of,
        operation,
        [fromPosition, toPosition].filter((position) => position !== null).join(' → ') || '-',
        actor,
        reason,
      ]),
    ),
  );
}

export interface RemoteSnapshot {
  readonly id: string;
  readonly position: string;
  readonly rows: string;
  readonly bytes: string;
  readonly takenAt: string;
  readonly actor: string;
  readonly reason: string;
}

/** The snapshots of all versions, or of one; the newest of a version first. */
export async function readSnapshots(
  api: RemoteApi,
  version: string | undefined,
): Promise<readonly { readonly version: string; readonly snapshots: readonly RemoteSnapshot[] }[]> {
  const fields = 'id snapshots { id position rows bytes takenAt actor reason }';
  const found =
    version === undefined ? await allSnapshots(api, fields) : await snapshotsOfVersion(api, fields, version);
  return found.map(({ id, snapshots }) => ({ version: id, snapshots }));
}

interface VersionSnapshots {
  readonly id: string;
  readonly snapshots: readonly RemoteSnapshot[];
}

async function allSnapshots(api: RemoteApi, fields: string): Promise<readonly VersionSnapshots[]> {
  const query = `query Snapshots($after: String) { versions(after: $after) { items { ${fields} } next storesAway } }`;
  const { items, storesAway } = await itemsOf(
    async (after) => (await api.query<{ versions: RemotePage<VersionSnapshots> }>(query, { after })).versions,
    Number.POSITIVE_INFINITY,
  );
  warnOfStoresAway(storesAway);
  return items;
}

async function snapshotsOfVersion(api: RemoteApi, fields: string, id: string): Promise<readonly VersionSnapshots[]> {
  const query = `query Snapshots($id: ID!) { version(id: $id) { ${fields} } }`;
  const { version } = await api.query<{ version: VersionSnapshots | null }>(query, { id });
  return version ? [version] : [];
}

/** Prints the snapshots of a version, or of all. */
export async function remoteSnapshots(args: RemoteArguments, version: string | undefined): Promise<void> {
  const found = await readSnapshots(openRemote(args.remote), version);
  const rows = found.flatMap(({ version: id, snapshots }) => snapshots.map((one) => ({ version: id, ...one })));
  if (args.json) return console.log(JSON.stringify(rows, null, 2));
  if (rows.length === 0) return console.log('There are no snapshots.');
  console.log(
    textTable(
      ['version', 'snapshot', 'position', 'rows', 'size', 'taken', 'by', 'reason'],
      rows.map((one) => [
        one.version,
        one.id,
        integer(BigInt(one.position)),
        integer(BigInt(one.rows)),
        bytes(BigInt(one.bytes)),
        one.takenAt,
        one.actor,
        one.reason,
      ]),
    ),
  );
}

interface CanaryVersion {
  readonly id: string;
  readonly state: string;
  readonly canary: {
    readonly text: string;
    readonly operations: number;
    readonly errors: number;
    readonly otherOperations: number;
    readonly otherErrors: number;
  } | null;
}

/** Prints the canaries with their figures. */
export async function remoteCanaries(args: RemoteArguments): Promise<void> {
  const api = openRemote(args.remote);
  const query = `query Canaries($after: String) {
    versions(after: $after) {
      items { id state canary { text percent header headerValue operations errors otherOperations otherErrors } }
      next
      storesAway
    }
  }`;
  const { items, storesAway } = await itemsOf(
    async (after) => (await api.query<{ versions: RemotePage<CanaryVersion> }>(query, { after })).versions,
    Number.POSITIVE_INFINITY,
  );
  warnOfStoresAway(storesAway);
  const running = items.filter(({ canary }) => canary !== null);
  if (args.json) return console.log(JSON.stringify(running, null, 2));
  const lines = running.flatMap(({ id, canary }) =>
    canary
      ? [
          `${id} answers ${canary.text}: ${integer(canary.errors)} errors of ${integer(canary.operations)} operations, the active version ${integer(canary.otherErrors)} of ${integer(canary.otherOperations)}`,
        ]
      : [],
  );
  console.log(lines.join('\n') || 'No version is a canary.');
}
