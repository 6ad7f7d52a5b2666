import { callsPerSecond } from './calls-per-second.ts';
import type { Turn } from './rounds.ts';
import type { BenchContext } from './scenario.ts';

/** A turn of so many callers at once, when the disk is at rest and what they run is warm: calls a second, or events where a call has several. */
export function appendTurn(
  { server, quick }: BenchContext,
  callers: number,
  call: (caller: number) => Promise<unknown>,
  eventsPerCall = 1,
): Turn {
  return async () => {
    await server.settle();
    await callsPerSecond(callers, 100, call);
    return eventsPerCall * (await callsPerSecond(callers, quick ? 400 : 3000, call));
  };
}
