import { RefoldError } from '../../errors.ts';
import type { AnswerSize, Queryable } from './statement.ts';

export function answerSize(most: number): AnswerSize {
  return { most, left: most };
}

/** Statements that belong to one answer. */
export function ofOneAnswer(db: Queryable, size: AnswerSize | undefined): Queryable {
  return { elsewhere: db.elsewhere, query: (statement) => db.query({ ...statement, size }) };
}

/** Takes what a process makes itself for an answer. @throws RefoldError `ANSWER_TOO_LARGE` */
export function takeFrom(size: AnswerSize | undefined, bytes: number): void {
  if (!size) return;
  size.left -= bytes;
  if (size.left < 0) throw new RefoldError('ANSWER_TOO_LARGE', tooLargeText(size));
}

export function tooLargeText({ most }: AnswerSize): string {
  return `The answer is larger than ${most} bytes, which is the limit. Ask for fewer rows or fields.`;
}
