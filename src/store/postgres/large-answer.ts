import type pg from 'pg';
import { tooLargeText } from '../statements/answer-size.ts';
import type { AnswerSize } from '../statements/statement.ts';

/** This process closed the connection because the rows of an answer have more bytes than it may have. */
export class LargeAnswer extends Error {
  override readonly name = 'LargeAnswer';

  constructor(size: AnswerSize) {
    super(tooLargeText(size));
  }
}

interface Sized {
  /** Of the statement that was sent last. */
  answerSize?: AnswerSize | undefined;
}

/**
 * Closes the connection as soon as an answer is too large, because nothing else ends a statement's rows. They are counted as they arrive, by
 * packet: small answers cost nothing more, and a large one takes no more memory than its limit.
 */
export function endLargeAnswers(client: pg.Client & Sized): void {
  const { stream } = client.connection;
  stream.prependListener('data', (chunk: Buffer) => {
    const size = client.answerSize;
    if (!size) return;
    size.left -= chunk.length;
    if (size.left < 0) stream.destroy(new LargeAnswer(size));
  });
}
