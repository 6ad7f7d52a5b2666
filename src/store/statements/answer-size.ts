import type { AnswerSize, Queryable } from './statement.ts';

export function answerSize(most: number): AnswerSize {
  return { most, left: most };
}

/** Statements that belong to one answer. */
export function ofOneAnswer(db: Queryable, size: AnswerSize | undefined): Queryable {
  return { elsewhere: db.elsewhere, query: (statement) => db.query({ ...statement, size }) };
}
