import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import type { Projection } from '../src/index.ts';
import { checkpointChannel } from '../src/store/processors/checkpoints.ts';
import { check } from './check.ts';

/** How far something has come, and when it came to each place on the way. */
export interface Progress {
  /** It is at that place now, and so beyond those before. */
  tell(place: number): void;
  /** Resolves when it is there. */
  until(place: number): Promise<void>;
  /** The moment, as of `performance.now()`, at which it was there. */
  at(place: number): number;
}

const longestWait = 60_000;

export function createProgress(): Progress {
  const moments: number[] = [];
  return {
    tell(place) {
      const now = performance.now();
      while (moments.length <= place) moments.push(now);
    },
    async until(place) {
      const deadline = performance.now() + longestWait;
      while (moments.length <= place && performance.now() < deadline) await pause(5);
      check(moments.length > place, () => `${moments.length - 1} after a minute, not ${place}`);
    },
    at(place) {
      const moment = moments[place];
      check(moment !== undefined, () => `${moments.length - 1}, not ${place}`);
      return moment;
    },
  };
}

/** Up to which position a projection's rows are committed, as the notification tells that comes with each commit of theirs. */
export async function followCommits(
  listener: pg.Client,
  { name, version }: Pick<Projection, 'name' | 'version'>,
): Promise<Progress> {
  const progress = createProgress();
  const beginning = `${name}@${version}:`;
  listener.on('notification', ({ payload = '' }) => {
    if (payload.startsWith(beginning)) progress.tell(Number(payload.slice(beginning.length)));
  });
  await listener.query(`listen ${checkpointChannel}`);
  return progress;
}
