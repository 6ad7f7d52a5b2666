import { type GlobalPosition, globalPosition } from './global-position.ts';

/**
 * A position that a client keeps and sends back later, with an anchor. The anchor is the last 8 characters of the id of the last event at
 * or below the position. If that event is still there, the log up to the position is the one that the client saw. After a failover that
 * lost events it may differ.
 */
export interface PositionToken {
  readonly position: GlobalPosition;
  /** Null if unknown: the position is then used without a check. */
  readonly anchor: string | null;
}

/** `1042.9f3c21ab`, or `1042` without an anchor. */
export function tokenText({ position, anchor }: PositionToken): string {
  return anchor === null ? String(position) : `${position}.${anchor}`;
}

/** Parses the output of {@link tokenText}. @throws RangeError for any other text */
export function parseToken(text: string): PositionToken {
  const [, position, anchor] = /^(\d{1,15})(?:\.([0-9a-f]{8}))?$/.exec(text) ?? [];
  if (position === undefined)
    throw new RangeError(
      `Expected a global position (a decimal string such as '1042', or with its anchor, such as '1042.9f3c21ab'), found '${text.slice(0, 40)}'.`,
    );
  return { position: globalPosition(position), anchor: anchor ?? null };
}

/** The token for the position of an event. */
export function tokenOf({ id, position }: { readonly id: string; readonly position: GlobalPosition }): PositionToken {
  return { position, anchor: id.slice(-8) };
}

/** The later of two tokens. If the positions are equal, the one with an anchor. */
export function laterToken(a: PositionToken, b: PositionToken): PositionToken {
  if (a.position !== b.position) return a.position > b.position ? a : b;
  return a.anchor === null ? b : a;
}
