import type { ExecutionResult } from 'graphql';
import type { Logger } from 'pino';
import { laterToken, type PositionToken, tokenText } from '../../events/position-token.ts';
import { cursorText, tokenIn } from '../../projections/queries/change-cursor.ts';
import type { OperationReadModels } from './gateway-services.ts';

/** What the header `refold-position: 1` asks for. */
export interface AnswerPosition {
  /** A command of the operation wrote up to here. */
  note(written: PositionToken): void;
  /** The answer, with where it is in `extensions`. */
  told<R>(result: R, reads: OperationReadModels): Promise<R>;
}

/**
 * `extensions.position`: everything up to here is in the answer; and `extensions.cursors`, by projection, what a change feed goes on from.
 * Where nothing was read, it is what was written; where there is neither, or the rows have just moved, nothing is told.
 */
export function createAnswerPosition(logger: Logger): AnswerPosition {
  let written: PositionToken | undefined;

  async function extensionsOf(reads: OperationReadModels): Promise<Record<string, unknown> | undefined> {
    const read = await reads.readPositions();
    if (read === undefined) return undefined;
    const [first, ...others] = read.map(tokenIn);
    const least = others.reduce((a, b) => (a !== undefined && a.position < b.position ? a : b), first);
    const position = least ?? written;
    if (position === undefined) return undefined;
    const cursors = Object.fromEntries(read.map((one) => [one.name, cursorText(one)]));
    return { position: tokenText(position), ...(read.length > 0 ? { cursors } : {}) };
  }

  return {
    note(token) {
      written = written === undefined ? token : laterToken(written, token);
    },
    async told(result, reads) {
      const answer = result as ExecutionResult; // of an execution that is no stream
      try {
        const told = await extensionsOf(reads);
        if (!told) return result;
        return { ...answer, extensions: { ...answer.extensions, ...told } } as typeof result;
      } catch (error) {
        // What was written stays written: the answer must not become an error.
        logger.warn({ err: error }, 'the position of an answer could not be determined');
        return result;
      }
    },
  };
}
