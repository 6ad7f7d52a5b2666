import type { ExecutionResult } from 'graphql';
import { RefoldError } from '../../errors.ts';
import type { HeldRow, HeldRows } from '../../schema/contract/held-rows.ts';

/** @throws RefoldError `BAD_USER_INPUT` for another text than `warn` and `refuse` in the header `refold-held` */
export function heldRowsOf(header: string | undefined): HeldRows {
  if (header !== undefined && header !== 'warn' && header !== 'refuse')
    throw new RefoldError(
      'BAD_USER_INPUT',
      `The header refold-held is 'warn' or 'refuse', found '${header.slice(0, 40)}'.`,
    );
  return { refuse: header === 'refuse', written: new Set(), found: [] };
}

/** Adds the held rows of an answer to its `extensions`: one for each row and reason. */
export function withHeldRows<R>(result: R, held: HeldRows | undefined): R {
  if (!held || held.found.length === 0) return result;
  const distinct = new Map(held.found.map((row) => [JSON.stringify(publicRow(row)), publicRow(row)]));
  const answer = result as ExecutionResult; // of an execution, not a stream
  return { ...answer, extensions: { ...answer.extensions, held: [...distinct.values()] } } as R;
}

function publicRow({ position, key, ...row }: HeldRow) {
  const values = key?.map((value) => (typeof value === 'bigint' ? value.toString() : value));
  return { ...row, key: values ?? null, position: position.toString() };
}
