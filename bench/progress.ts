import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import type { Projection } from '../src/index.ts';
import { checkpointChannel } from '../src/store/processors/checkpoint-notifications.ts';
import { check } from './check.ts';

/** How far an operation has come, and when it reached each place. */
export interface Progress {
  /** Reports that it has reached this place, and all before it. */
  tell(place: number): void;
  /** Resolves when it has reached the place. */
  until(place: number): Promise<void>;
  /** When it reached the place, in terms of `performance.now()`. */
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

/** The position up to which a projection's rows are committed, from the notification that comes with each of its commits. */
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
