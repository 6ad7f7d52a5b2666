import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { type PositionToken, tokenText } from '../../events/position-token.ts';

/** How far somebody knows the rows of a read model: what a change feed goes on from. */
export interface ChangeCursor {
  readonly position: GlobalPosition;
  /** Of the position. @default not known */
  readonly anchor?: string | null;
  /** The rows it is of; null: whichever were served then. */
  readonly rows: RowGeneration | null;
}

/** Rows that follow from each other by changes: another version, or rows that were built anew, have others. */
export interface RowGeneration {
  readonly version: number;
  readonly generation: number;
}

/** The position of a cursor, as a token. */
export function tokenIn({ position, anchor = null }: Omit<ChangeCursor, 'rows'>): PositionToken {
  return { position, anchor };
}

/** `1042.9f3c21ab@2.1`: position 1042 with its anchor, of the first rows of version 2 */
export function cursorText(cursor: ChangeCursor): string {
  const { rows } = cursor;
  const position = tokenText(tokenIn(cursor));
  return rows ? `${position}@${rows.version}.${rows.generation}` : position;
}

/** What {@link cursorText} made, or a position alone. @throws RangeError for anything else */
export function parseCursor(text: string): ChangeCursor {
  const [, position, anchor, version, generation] =
    /^(\d{1,15})(?:\.([0-9a-f]{8}))?(?:@(\d{1,4})\.(\d{1,9}))?$/.exec(text) ?? [];
  if (position === undefined)
    throw new RangeError(
      `Expected the cursor of a message, such as '1042.9f3c21ab@2.1', or a position such as '1042'; found '${text.slice(0, 40)}'.`,
    );
  return {
    position: globalPosition(position),
    ...(anchor === undefined ? {} : { anchor }),
    rows:
      version === undefined || generation === undefined
        ? null
        : { version: Number(version), generation: Number(generation) },
  };
}
