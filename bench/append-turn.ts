import { callsPerSecond } from './calls-per-second.ts';
import type { Turn } from './rounds.ts';
import type { BenchContext } from './scenario.ts';

/** A turn of this many concurrent callers, after the disk is idle and the code is warm: calls per second, or events if a call has several. */
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
