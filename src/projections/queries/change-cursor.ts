import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { type PositionToken, tokenText } from '../../events/position-token.ts';

/** How far a client knows the rows of a read model. A change feed continues from here. */
export interface ChangeCursor {
  readonly position: GlobalPosition;
  /** The anchor of the position. @default unknown */
  readonly anchor?: string | null;
  /** The generation of the rows; null: the rows that were served at that time. */
  readonly rows: RowGeneration | null;
}

/** The log position of the rows of one read model when they were read. A change feed can continue from it. */
export interface ReadPosition extends ChangeCursor {
  /** The projection's name. */
  readonly name: string;
  /** The read store that holds the rows. */
  readonly store: string;
}

/** Identifies rows that evolve by changes only. Another version and a rebuild have another generation. */
export interface RowGeneration {
  readonly version: number;
  readonly generation: number;
}

/** The position of a cursor, as a token. */
export function tokenIn({ position, anchor = null }: Omit<ChangeCursor, 'rows'>): PositionToken {
  return { position, anchor };
}

/** `1042.9f3c21ab@2.1`: position 1042 with its anchor, in generation 1 of version 2 */
export function cursorText(cursor: ChangeCursor): string {
  const { rows } = cursor;
  const position = tokenText(tokenIn(cursor));
  return rows ? `${position}@${rows.version}.${rows.generation}` : position;
}

/** Parses the output of {@link cursorText}, or a position alone. @throws RangeError for any other text */
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
