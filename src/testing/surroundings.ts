/** Something outside of its arguments that code may read by mistake. */
export interface Surrounding {
  /** Completes a sentence, such as 'The rows differ …'. */
  readonly when: string;
  readonly wayOut: string;
  /** Changes it for the whole process. Returns a function that undoes the change. */
  change(): () => void;
}

// Every part of a local time differs, whatever the time is: year, quarter, month, day, weekday, hour, minute and second.
const clockOffset = ((492 * 24 + 13) * 60 + 31) * 60_000 + 17_123;

const zoneWayOut = 'It depends on the time zone of the process: name a zone, or use UTC.';
const languageWayOut = 'It depends on the language of the process: name a locale, or let clients format.';

/**
 * What differs between processes, or between a first run and a replay. The two zones are 26 hours apart, so local dates differ in at least one of
 * them. The languages differ from others in the order and case of letters, and in digits.
 */
export const surroundings: readonly Surrounding[] = [
  {
    when: 'if the clock is moved',
    wayOut: "It reads the clock: use the event's `recordedAt`, or a time in its payload.",
    change: moveClock,
  },
  { when: 'in another time zone', wayOut: zoneWayOut, change: () => setZone('Etc/GMT+12') },
  { when: 'in another time zone', wayOut: zoneWayOut, change: () => setZone('Etc/GMT-14') },
  { when: 'in another language', wayOut: languageWayOut, change: () => setLanguage('tr-TR') },
  { when: 'in another language', wayOut: languageWayOut, change: () => setLanguage('ar-EG') },
];

/** Runs synchronous work in changed surroundings. */
export function inChanged<T>(surrounding: Surrounding, work: () => T): T {
  const undo = surrounding.change();
  try {
    return work();
  } finally {
    undo();
  }
}

let last: Promise<unknown> = Promise.resolve();

/** Runs asynchronous work in changed surroundings. One at a time, because others would undo the changes in the wrong order. */
export async function inChangedAsync<T>(surrounding: Surrounding, work: () => Promise<T>): Promise<T> {
  const turn = last.then(async () => {
    const undo = surrounding.change();
    try {
      return await work();
    } finally {
      undo();
    }
  });
  last = turn.catch(() => {});
  return turn;
}

function moveClock(): () => void {
  const real = Date;
  const now = () => real.now() + clockOffset;
  const moved: DateConstructor = new Proxy(real, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget === moved ? target : newTarget),
    apply: () => new real(now()).toString(),
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
  });
  return replace(globalThis, 'Date', moved);
}

/** Works in processes. In worker threads, Node keeps the zone that the process started with. */
function setZone(zone: string): () => void {
  const { TZ: before } = process.env;
  process.env.TZ = zone;
  return () => {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  };
}

/** Methods that take a locale, and at which place. */
const localeMethods: readonly (readonly [target: object, name: string, at: number])[] = [
  [Date.prototype, 'toLocaleString', 0],
  [Date.prototype, 'toLocaleDateString', 0],
  [Date.prototype, 'toLocaleTimeString', 0],
  [Number.prototype, 'toLocaleString', 0],
  [BigInt.prototype, 'toLocaleString', 0],
  [String.prototype, 'toLocaleUpperCase', 0],
  [String.prototype, 'toLocaleLowerCase', 0],
  [String.prototype, 'localeCompare', 1],
];
const localeClasses = ['Collator', 'DateTimeFormat', 'ListFormat', 'NumberFormat', 'PluralRules', 'RelativeTimeFormat'];

/** Node can't change its default language while it runs, so the code that falls back to it gets this one. */
function setLanguage(language: string): () => void {
  const named = (args: readonly unknown[], at: number) => {
    const all = [...args];
    all[at] ??= language;
    return all;
  };
  const undo = localeMethods.map(([target, name, at]) => {
    const method = Reflect.get(target, name) as (...args: unknown[]) => unknown; // in every Node
    return replace(target, name, function (this: unknown, ...args: unknown[]) {
      return method.apply(this, named(args, at));
    });
  });
  for (const name of localeClasses) {
    const original = Reflect.get(Intl, name) as new (...args: unknown[]) => object; // in every Node
    const moved: typeof original = new Proxy(original, {
      construct: (target, args, newTarget) =>
        Reflect.construct(target, named(args, 0), newTarget === moved ? target : newTarget),
      apply: (target, self, args) => Reflect.apply(target as unknown as () => unknown, self, named(args, 0)), // some are functions, too
    });
    undo.push(replace(Intl, name, moved));
  }
  return () => {
    for (const one of undo.toReversed()) one();
  };
}

function replace(target: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(target, name) as PropertyDescriptor; // only what exists is replaced
  Object.defineProperty(target, name, { ...before, value });
  return () => void Object.defineProperty(target, name, before);
}
