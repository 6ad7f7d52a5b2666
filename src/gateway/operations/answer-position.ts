import type { ExecutionResult } from 'graphql';
import type { Logger } from 'pino';
import { laterToken, type PositionToken, tokenText } from '../../events/position-token.ts';
import { cursorText, type ReadPosition, tokenIn } from '../../projections/queries/change-cursor.ts';
import type { OperationReads } from './gateway-services.ts';

/** Implements the header `refold-position: 1`. */
export interface AnswerPosition {
  /** Records the position that a command of the operation wrote. */
  note(written: PositionToken): void;
  /** Returns the result with the position in `extensions`. */
  withPosition<R>(result: R, reads: OperationReads): Promise<R>;
}

/**
 * Adds `extensions.position` (the answer includes everything up to here) and `extensions.cursors` (by projection, where a change feed
 * continues). If several read stores were read, also `extensions.stores`: the position of each. If nothing was read, the position is that of the writes. If nothing was written either, or the position of the rows cannot be
 * determined, nothing is added.
 */
export function createAnswerPosition(logger: Logger): AnswerPosition {
  let written: PositionToken | undefined;

  async function extensionsOf(reads: OperationReads): Promise<Record<string, unknown> | undefined> {
    const read = await reads.readPositions();
    if (read === undefined) return undefined;
    const [first, ...others] = read.map(tokenIn);
    const least = others.reduce((a, b) => (a !== undefined && a.position < b.position ? a : b), first);
    const position = least ?? written;
    if (position === undefined) return undefined;
    const cursors = Object.fromEntries(read.map((one) => [one.name, cursorText(one)]));
    const stores = positionsOfStores(read);
    return {
      position: tokenText(position),
      ...(read.length > 0 ? { cursors } : {}),
      ...(Object.keys(stores).length > 1 ? { stores } : {}),
    };
  }

  return {
    note(token) {
      written = written === undefined ? token : laterToken(written, token);
    },
    async withPosition(result, reads) {
      const answer = result as ExecutionResult; // of an execution, not a stream
      try {
        const withPosition = await extensionsOf(reads);
        if (!withPosition) return result;
        return { ...answer, extensions: { ...answer.extensions, ...withPosition } } as typeof result;
      } catch (error) {
        // The writes are committed: the response must not become an error.
        logger.warn({ err: error }, 'the position of an answer could not be determined');
        return result;
      }
    },
  };
}

/** Each store is read in a snapshot of its own, at a position of its own: the lowest of what was read of it. */
function positionsOfStores(read: readonly ReadPosition[]): Readonly<Record<string, string>> {
  const lowest = new Map<string, PositionToken>();
  for (const one of read) {
    const token = tokenIn(one);
    const before = lowest.get(one.store);
    if (!before || token.position < before.position) lowest.set(one.store, token);
  }
  return Object.fromEntries([...lowest].map(([store, token]) => [store, tokenText(token)]));
}
