import { type PositionToken, tokenOf } from '../../events/position-token.ts';
import type { CommandResult } from '../contract/operation-context.ts';

/** Where a command has written. Its last event is the anchor; one that wrote none has a position alone. */
export function writtenToken({ position, events }: CommandResult): PositionToken {
  const last = events.at(-1);
  return last?.position === position ? tokenOf(last) : { position, anchor: null };
}
