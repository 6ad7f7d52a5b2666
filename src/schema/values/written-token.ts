import { type PositionToken, tokenOf } from '../../events/position-token.ts';
import type { CommandResult } from '../contract/operation-context.ts';

/** The position that a command has written. Its last event is the anchor; without events, the position has no anchor. */
export function writtenToken({ position, events }: CommandResult): PositionToken {
  const last = events.at(-1);
  return last?.position === position ? tokenOf(last) : { position, anchor: null };
}
