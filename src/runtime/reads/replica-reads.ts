import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { AnswerQuery } from '../../projections/queries/answer-query.ts';
import type { ReadModels, RowReads } from '../../schema/contract/operation-context.ts';
import type { NearReads, OperationReadModels } from './operation-read-models.ts';
import type { Replica } from './replica.ts';

/**
 * The reads of one operation, from the replica. Where the replica lacks a position that is demanded, all of them are made on the primary, which
 * waits for it. Where that turns out after a read, or a read fails because of where it was made, the operation is `lost`: its answer is of
 * nothing whole, and it is to be executed again, on the primary.
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
    return attempt(() => work(near));
  }

  async function attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (replica.blame(error)) lost = true;
      throw error;
    }
  }

  /** A failure is as good as a no, as long as nothing was read. */
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
      return lost;
    },
    ...(near.answer ? { answer: (query: AnswerQuery) => read((reads) => answerOf(reads, query)) } : {}),
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

function answerOf(reads: ReadModels, query: AnswerQuery): Promise<string> {
  if (!reads.answer) throw new TypeError('These reads make no whole answers.'); // without a snapshot they do
  return reads.answer(query);
}
