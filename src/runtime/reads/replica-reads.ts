import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ReadModels, RowReads } from '../../schema/contract/operation-context.ts';
import type { NearReads, OperationReadModels } from './operation-read-models.ts';
import type { Replica } from './replica.ts';

/**
 * The reads of one operation, from the replica. If the replica lacks a demanded position, all reads use the primary, which waits for the position.
 * If that happens after a first read, or a read fails because of the replica, the operation is `lost`: its response is incomplete and it must be
 * executed again, on the primary.
 */
export function readsFromReplica(
  replica: Replica,
  near: NearReads,
  openPrimary: () => OperationReadModels,
): OperationReadModels {
  let primary: OperationReadModels | undefined;
  let hasRead = false;
  let lost = false;

  async function read<T>(work: (reads: ReadModels) => Promise<T>): Promise<T> {
    if (primary) return work(primary);
    hasRead = true;
    try {
      return await work(near);
    } catch (error) {
      if (replica.blame(error)) lost = true;
      throw error;
    }
  }

  /** A failure counts as no, because nothing was read yet. */
  async function holds(projection: Projection, position: GlobalPosition): Promise<boolean> {
    try {
      return await near.holds(projection, position);
    } catch (error) {
      if (!replica.blame(error)) throw error;
      return false;
    }
  }

  const rows: RowReads = {
    findByKeys: (...given) => read((reads) => reads.findByKeys(...given)),
    findByUnique: (...given) => read((reads) => reads.findByUnique(...given)),
    findPage: (...given) => read((reads) => reads.findPage(...given)),
    count: (...given) => read((reads) => reads.count(...given)),
    findRelated: (...given) => read((reads) => reads.findRelated(...given)),
    countRelated: (...given) => read((reads) => reads.countRelated(...given)),
    aggregate: (...given) => read((reads) => reads.aggregate(...given)),
  };
  return {
    ...near,
    ...rows,
    get lost() {
      return lost || primary?.lost === true;
    },
    async waitFor(projection, position) {
      if (!primary && (await holds(projection, position))) return;
      if (hasRead && !primary) {
        lost = true;
        throw new Error('The replica lacks a position that is demanded after a read of it.');
      }
      primary ??= openPrimary();
      await primary.waitFor(projection, position);
    },
    samePosition: (a, b) => (primary ?? near).samePosition(a, b),
    readPositions: () => (primary ?? near).readPositions(),
    async close() {
      await Promise.all([near.close(), primary?.close()]);
    },
  };
}
