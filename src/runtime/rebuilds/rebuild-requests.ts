import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { type Rebuild, readAllRebuilds } from '../../store/registry/rebuilds.ts';
import type { WhichSnapshot } from '../../store/tables/table-snapshots.ts';
import { refused, type TransitionReason } from '../versions/expect-version.ts';
import { requestRebuild } from './rebuild.ts';
import { rebuildInPlace } from './rebuild-in-place.ts';

/** How a read table is rebuilt. */
export interface RebuildRequest extends TransitionReason {
  /**
   * Rebuilds the table itself, for disks without room for two. The version is not served meanwhile.
   * @default false: a new table beside the one that serves
   */
  readonly inPlace?: boolean;
  /**
   * Starts with the rows of a snapshot, and folds only later events: `'latest'`, `{ id: 12n }`, or the newest one at or below a position,
   * `{ upTo: position }`.
   * @default none: every event is folded
   */
  readonly from?: WhichSnapshot;
  /**
   * Waits while another rebuild of the version runs, and then requests this one. Without it, the request is refused.
   * @default false
   */
  readonly wait?: boolean;
  /** Ends the wait. @default none */
  readonly signal?: AbortSignal;
}

/** Requests rebuilds of read tables, as `refold rebuild` does. A process that maintains the version does the work. */
export interface Rebuilds {
  /**
   * Resolves when the rebuild is requested. `status()` has its progress as `rebuild`.
   *
   * @param version in the format of the command line: `cart_summary@2`
   * @throws RefoldError `INVALID_TRANSITION` if another rebuild of the version runs (with `wait`: if it has stopped, or waits for an
   *   operator), or if there is nothing to rebuild, or no such snapshot; `PROJECTION_CHANGED` if its table is declared here differently
   */
  request(version: string, request: RebuildRequest): Promise<void>;
}

export interface RebuildsOptions {
  /** The database of a version. */
  dbOf(projection: Projection): Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projections: readonly Projection[];
  /** Called once for each other rebuild that a request waits for, with who requested it. */
  readonly onWait?: (requestedBy: string) => void;
}

export function createRebuilds({ onWait, ...options }: RebuildsOptions): Rebuilds {
  const { dbOf, log, readSchema, projections } = options;

  async function once(projection: Projection, { actor, reason, inPlace, from }: RebuildRequest): Promise<void> {
    const step = { actor, reason };
    const db = dbOf(projection);
    if (inPlace) await rebuildInPlace({ ...options, db, projection }, step, from);
    else await requestRebuild(db, projection, readSchema, step, from && { log, snapshot: from });
  }

  return {
    async request(version, request) {
      const projection = declared(projections, version);
      for (;;) {
        try {
          return await once(projection, request);
        } catch (error) {
          const requestedBy = otherRequester(error);
          if (!request.wait || requestedBy === undefined) throw error;
          onWait?.(requestedBy);
          await untilEnded(dbOf(projection), projection, request.signal);
        }
      }
    },
  };
}

function declared(projections: readonly Projection[], version: string): Projection {
  const found = projections.find(({ id }) => id === version);
  if (found) return found;
  const known = projections.map(({ id }) => id);
  throw new RefoldError('INVALID_TRANSITION', `The application declares no ${version}.${closest(version, known)}`);
}

/** Who requested the rebuild because of which another was refused; undefined for any other error. */
function otherRequester(error: unknown): string | undefined {
  if (!(error instanceof RefoldError) || error.code !== 'INVALID_TRANSITION') return undefined;
  return error.fields.requestedBy as string | undefined; // `expectRebuildable` sets it
}

// In milliseconds. A rebuild takes seconds at least, so the wait for its end need not be shorter.
const betweenPolls = 200;

/** @throws RefoldError `INVALID_TRANSITION` if the rebuild has stopped or waits for an operator: it may never end. */
async function untilEnded(db: Database, { name, version }: Projection, signal: AbortSignal | undefined): Promise<void> {
  for (;;) {
    const other = (await readAllRebuilds(db)).find((one) => one.name === name && one.version === version);
    if (other === undefined) return;
    const stuck = whyStuck(other);
    if (stuck !== undefined) throw refused(name, version, `is being rebuilt already, and that rebuild ${stuck}`);
    await pause(betweenPolls, undefined, { ...(signal === undefined ? {} : { signal }) });
  }
}

function whyStuck({ status, error, heldReason }: Rebuild): string | undefined {
  if (heldReason !== null) return `does not take over: ${heldReason}`;
  return status === 'stopped' ? `has stopped: ${error?.message ?? 'unknown error'}` : undefined;
}
