import { means, type Point, type Slope, slopeOf } from './slopes.ts';

/** One figure in the course of a run. */
export interface Series {
  /** Such as `rows of refold.changes`. */
  readonly name: string;
  readonly unit: string;
  readonly samples: readonly Sample[];
}

export interface Sample {
  /** Milliseconds since the half began. */
  readonly at: number;
  /** Events in the log at that time. */
  readonly events: number;
  readonly value: number;
}

/** How fast a figure may rise. The first bound whose `figures` fits a name counts. */
export interface Bound {
  readonly figures: RegExp;
  /** `hour`; `event`: it grows with the log by design, and must not grow faster; `share`: by this share of its mean in an hour. */
  readonly per: 'hour' | 'event' | 'share';
  /** In the figure's unit. */
  readonly most: number;
  /** What comes before is left out: caches fill, plans settle, what is kept for a time is not pruned yet. */
  readonly warmUpMinutes: number;
  /** After the warm-up; below that it is not judged. */
  readonly leastMinutes: number;
  readonly because: string;
}

const megabyte = 1024 * 1024;

export const bounds: readonly Bound[] = [
  {
    figures: /^heap of steady/,
    per: 'hour',
    most: 10 * megabyte,
    warmUpMinutes: 5,
    leastMinutes: 10,
    because: 'after a collection only what is held is left; caches are bounded and full by then',
  },
  {
    figures: /^memory of steady/,
    per: 'hour',
    most: 60 * megabyte,
    warmUpMinutes: 10,
    leastMinutes: 15,
    because: 'V8 and the allocator give pages back late; a leak of a kilobyte a request is twice that',
  },
  {
    figures: /^connections/,
    per: 'hour',
    most: 4,
    warmUpMinutes: 1,
    leastMinutes: 5,
    because: 'pools are bounded; a deployment has one process more for a moment',
  },
  {
    figures: /^rows of refold\.(changes|runs)$/,
    per: 'hour',
    most: 12_000,
    warmUpMinutes: 17,
    leastMinutes: 10,
    because: 'changes are kept for 15 minutes; runs for days, one row for each processor in ten seconds',
  },
  {
    figures: /^size of refold\.(changes|runs)$/,
    per: 'hour',
    most: 8 * megabyte,
    warmUpMinutes: 17,
    leastMinutes: 10,
    because: 'as their rows; the room of those that were pruned is used again',
  },
  {
    figures: /^rows of refold\.field_usage$/,
    per: 'hour',
    most: 400,
    warmUpMinutes: 15,
    leastMinutes: 10,
    because: 'a row for each field that was asked for, by version and day: all of them, in the end',
  },
  {
    figures: /^rows of refold\.(events|append_keys)$/,
    per: 'event',
    most: 1.6,
    warmUpMinutes: 0,
    leastMinutes: 1,
    because: 'an event is one row; keys of commands and steps are kept for days, at most one for a command',
  },
  {
    figures: /^rows of refold\.(streams|stream_snapshots|dead_letters|discards|reactor_\w+)$/,
    per: 'event',
    most: 1,
    warmUpMinutes: 0,
    leastMinutes: 1,
    because: 'each is of one event at most',
  },
  {
    figures:
      /^rows of refold\.(transitions|projections|processors|change_floors|verifications|old_tables|usage_clients)$/,
    per: 'hour',
    most: 400,
    warmUpMinutes: 1,
    leastMinutes: 5,
    because: 'a few rows for each version, of which there is a new one every third minute',
  },
  {
    figures: /^rows of /,
    per: 'hour',
    most: 60,
    warmUpMinutes: 2,
    leastMinutes: 5,
    because: 'what is there once for each process, projection or lease',
  },
  {
    figures:
      /^size of (refold\.(events|streams|append_keys|stream_snapshots|dead_letters|discards|field_usage)|read models)$/,
    per: 'event',
    most: 1500,
    warmUpMinutes: 2,
    leastMinutes: 5,
    because: 'as many bytes for each event as its rows and their index entries take',
  },
  {
    figures: /^size of /,
    per: 'hour',
    most: 4 * megabyte,
    warmUpMinutes: 3,
    leastMinutes: 10,
    because: 'rows that are written again and again leave dead ones, which autovacuum makes room of',
  },
  {
    figures: /^write-ahead log/,
    per: 'share',
    most: 0.3,
    warmUpMinutes: 5,
    leastMinutes: 20,
    because: 'an event costs what it costs, however long the log; full page images come and go with checkpoints',
  },
  {
    figures: /^p(50|99) of /,
    per: 'share',
    most: 0.5,
    warmUpMinutes: 5,
    leastMinutes: 20,
    because: 'clients must not wait longer as the log grows; a shared machine makes this figure swing',
  },
  {
    figures: /^event loop delay/,
    per: 'share',
    most: 1,
    warmUpMinutes: 5,
    leastMinutes: 20,
    because: 'the work of a request does not grow with the log',
  },
];

export interface Verdict {
  readonly series: Series;
  readonly bound: Bound | undefined;
  readonly slope: Slope | undefined;
  /** The most that it may rise, in the slope's own measure. */
  readonly most: number;
  readonly verdict: 'within' | 'grows' | 'too short' | 'too uncertain' | 'not judged';
}

const minute = 60_000;
const hour = 60 * minute;
/** So many means are made of a figure's samples before a line is laid through them. */
const shares = 24;

export function judge(series: Series, among: readonly Bound[] = bounds): Verdict {
  const bound = among.find(({ figures }) => figures.test(series.name));
  const per = bound?.per ?? 'hour';
  const warm = series.samples.filter(({ at }) => at >= (bound?.warmUpMinutes ?? 0) * minute);
  const points = warm.map(({ at, events, value }): Point => ({ x: per === 'event' ? events : at / hour, y: value }));
  const slope = slopeOf(means(points, shares));
  const most = (bound?.most ?? 0) * (per === 'share' ? Math.abs(slope?.mean ?? 0) : 1);
  const span = ((warm.at(-1)?.at ?? 0) - (warm[0]?.at ?? 0)) / minute;
  return { series, bound, slope, most, verdict: verdictOf() };

  function verdictOf(): Verdict['verdict'] {
    if (!bound) return 'not judged';
    if (!slope || span < bound.leastMinutes) return 'too short';
    if (slope.rise - slope.error > most) return 'grows';
    return slope.rise + slope.error <= most ? 'within' : 'too uncertain';
  }
}
