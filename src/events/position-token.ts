import { type GlobalPosition, globalPosition } from './global-position.ts';

/**
 * A position as somebody remembers it who comes back with it: with its anchor, the last characters of the id of the last event at or below it.
 * While that event stands there, the log up to the position is the one that was seen; after a fail-over that lost events it may be another.
 */
export interface PositionToken {
  readonly position: GlobalPosition;
  /** Null where it is not known: a position alone is taken as it is. */
  readonly anchor: string | null;
}

/** `1042.9f3c21ab`, or `1042` without an anchor. */
export function tokenText({ position, anchor }: PositionToken): string {
  return anchor === null ? String(position) : `${position}.${anchor}`;
}

/** What {@link tokenText} made. @throws RangeError for anything else */
export function parseToken(text: string): PositionToken {
  const [, position, anchor] = /^(\d{1,15})(?:\.([0-9a-f]{8}))?$/.exec(text) ?? [];
  if (position === undefined)
    throw new RangeError(
      `Expected a global position (a decimal string such as '1042', or as it was given, such as '1042.9f3c21ab'), found '${text.slice(0, 40)}'.`,
    );
  return { position: globalPosition(position), anchor: anchor ?? null };
}

/** The position right after an event. */
export function tokenOf({ id, position }: { readonly id: string; readonly position: GlobalPosition }): PositionToken {
  return { position, anchor: id.slice(-8) };
}

/** The later of two; of the same position the one whose anchor is known. */
export function laterToken(a: PositionToken, b: PositionToken): PositionToken {
  if (a.position !== b.position) return a.position > b.position ? a : b;
  return a.anchor === null ? b : a;
}
