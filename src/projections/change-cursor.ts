import { type GlobalPosition, globalPosition } from '../events/global-position.ts';

/** How far somebody knows the rows of a read model: what a change feed goes on from. */
export interface ChangeCursor {
  readonly position: GlobalPosition;
  /** The rows it is of; null: whichever were served then. */
  readonly rows: RowGeneration | null;
}

/** Rows that follow from each other by changes: another version, or rows that were built anew, have others. */
export interface RowGeneration {
  readonly version: number;
  readonly generation: number;
}

/** `1042@2.1`: position 1042, of the first rows of version 2 */
export function cursorText({ position, rows }: ChangeCursor): string {
  return rows ? `${position}@${rows.version}.${rows.generation}` : String(position);
}

/** What {@link cursorText} made, or a position alone. @throws RangeError for anything else */
export function parseCursor(text: string): ChangeCursor {
  const [, position, version, generation] = /^(\d{1,15})(?:@(\d{1,4})\.(\d{1,9}))?$/.exec(text) ?? [];
  if (position === undefined)
    throw new RangeError(
      `Expected the cursor of a message, such as '1042@2.1', or a position such as '1042'; found '${text.slice(0, 40)}'.`,
    );
  return {
    position: globalPosition(position),
    rows:
      version === undefined || generation === undefined
        ? null
        : { version: Number(version), generation: Number(generation) },
  };
}
