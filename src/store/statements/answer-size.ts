import type { Queryable } from './statement.ts';

/** How many bytes an answer may still receive from the database. All statements of the answer share it. */
export interface AnswerSize {
  readonly most: number;
  left: number;
}

export function answerSize(most: number): AnswerSize {
  return { most, left: most };
}

/** Statements that belong to one answer. */
export function ofOneAnswer(db: Queryable, size: AnswerSize | undefined): Queryable {
  return { elsewhere: db.elsewhere, query: (statement) => db.query({ ...statement, size }) };
}
