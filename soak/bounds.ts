import { means, type Point, type Slope, slopeOf } from './slopes.ts';

/** One figure over the course of a run. */
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

/** How fast a figure may rise. The first bound whose `figures` matches the name applies. */
export interface Bound {
  readonly figures: RegExp;
  /** `hour`; `event`: it grows with the log by design, and must not grow faster; `share`: by this share of its mean per hour. */
  readonly per: 'hour' | 'event' | 'share';
  /** In the figure's unit. */
  readonly most: number;
  /** Earlier samples are left out: caches fill, plans settle, and data with a retention time is not pruned yet. */
  readonly warmUpMinutes: number;
  /** Least duration after the warm-up. A shorter series is not judged. */
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
    because: 'a collection leaves only referenced objects; caches are bounded and full by then',
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
    because: 'pools are bounded; a deployment briefly has one more process',
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
    because: 'grows as its rows do; the space of pruned rows is reused',
  },
  {
    figures: /^rows of refold\.field_usage$/,
    per: 'hour',
    most: 400,
    warmUpMinutes: 15,
    leastMinutes: 10,
    because: 'a row per selected field, version and day; their number is bounded',
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
    because: 'at most one per event',
  },
  {
    figures:
      /^rows of refold\.(transitions|projections|processors|change_floors|verifications|old_tables|usage_clients)$/,
    per: 'hour',
    most: 400,
    warmUpMinutes: 1,
    leastMinutes: 5,
    because: 'a few rows per version; a new version comes every third minute',
  },
  {
    figures: /^rows of /,
    per: 'hour',
    most: 60,
    warmUpMinutes: 2,
    leastMinutes: 5,
    because: 'one row per process, projection or lease',
  },
  {
    figures:
      /^size of (refold\.(events|streams|append_keys|stream_snapshots|dead_letters|discards|field_usage)|read models)$/,
    per: 'event',
    most: 1500,
    warmUpMinutes: 2,
    leastMinutes: 5,
    because: 'an event takes the bytes of its rows and their index entries',
  },
  {
    figures: /^size of /,
    per: 'hour',
    most: 4 * megabyte,
    warmUpMinutes: 3,
    leastMinutes: 10,
    because: 'rows that change often leave dead rows; autovacuum frees their space',
  },
  {
    figures: /^write-ahead log/,
    per: 'share',
    most: 0.3,
    warmUpMinutes: 5,
    leastMinutes: 20,
    because:
      'the cost of an event does not depend on the length of the log; full page images come and go with checkpoints',
  },
  {
    figures: /^p(50|99) of /,
    per: 'share',
    most: 0.5,
    warmUpMinutes: 5,
    leastMinutes: 20,
    because: 'latency must not rise with the log; on a shared machine this figure varies',
  },
  {
    figures: /^event loop delay/,
    per: 'share',
    most: 1,
    warmUpMinutes: 5,
    leastMinutes: 20,
    because: 'the work per request does not grow with the log',
  },
];

export interface Verdict {
  readonly series: Series;
  readonly bound: Bound | undefined;
  readonly slope: Slope | undefined;
  /** The most that it may rise, in the unit of the slope. */
  readonly most: number;
  readonly verdict: 'within' | 'grows' | 'too short' | 'too uncertain' | 'not judged';
}

const minute = 60_000;
const hour = 60 * minute;
/** Samples are reduced to this many means before a line is fitted. */
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
