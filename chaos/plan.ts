import { seeded } from '../test/support/account-traffic.ts';

export const workers = 3;
export const gateways = 2;

/** A place that has a process, and networks to the databases. */
export type At = { readonly role: 'worker' | 'gateway'; readonly index: number };
/** A network to the database of the log, or to the read store. The traffic runs in the process of the run itself, and does not use the store. */
export type NetworkOf = (At & { readonly to?: 'store' }) | 'traffic';

/** A fault, or an operation on a running application. */
export type Action =
  /** The process ends at once (SIGKILL). If it is `watched`, no other action is performed until its work has new owners. */
  | { readonly kind: 'kill'; readonly worker: number; readonly watched: boolean }
  /** The process hangs for so many times its lease, then continues as if nothing had happened. */
  | { readonly kind: 'stall'; readonly worker: number; readonly leases: number; readonly watched: boolean }
  /** The process gets SIGTERM, and another one is started in its place. */
  | { readonly kind: 'restart'; readonly worker: number }
  /** The process ends. Its successor declares the next version of a projection. */
  | { readonly kind: 'deploy'; readonly worker: number }
  | { readonly kind: 'kill a gateway'; readonly gateway: number }
  | { readonly kind: 'restart a gateway'; readonly gateway: number }
  /** Any process hangs, for an unnoticeable time up to longer than its lease. */
  | { readonly kind: 'freeze'; readonly at: At; readonly ms: number }
  /** The process's clock differs from the real time by so much, until the round ends. */
  | { readonly kind: 'clock jump'; readonly at: At; readonly ms: number }
  | { readonly kind: 'delay'; readonly at: NetworkOf; readonly ms: number; readonly seconds: number }
  /** Bytes and connections are accepted, and nothing is passed on. Then the connections that lost bytes are reset. */
  | { readonly kind: 'half-open'; readonly at: NetworkOf; readonly seconds: number }
  | {
      readonly kind: 'one-way stall';
      readonly at: NetworkOf;
      readonly from: 'server' | 'client';
      readonly seconds: number;
    }
  | { readonly kind: 'split packets'; readonly at: NetworkOf; readonly seconds: number; readonly draw: number }
  /** The next commit reaches the server, and its response does not come back. */
  | { readonly kind: 'cut after commit'; readonly at: NetworkOf }
  /** The server ends this share of its sessions. */
  | { readonly kind: 'cut sessions'; readonly share: number; readonly draw: number; readonly of: 'log' | 'store' }
  | { readonly kind: 'restart PostgreSQL'; readonly how: 'fast' | 'immediate' }
  /** The primary is killed, and a standby that has every commit takes over. */
  | { readonly kind: 'promote' }
  /** The same, but the standby lacks the commits of the last milliseconds. */
  | { readonly kind: 'promote without the tail'; readonly ms: number }
  | { readonly kind: 'disk full'; readonly ms: number }
  /** After a `crash`, the store's server stays down for so long. */
  | { readonly kind: 'restart the store'; readonly how: 'fast' | 'immediate' | 'crash'; readonly seconds: number }
  /** The store's server is down, or its network is silent. No other fault is active meanwhile. */
  | { readonly kind: 'store away'; readonly how: 'down' | 'silent'; readonly seconds: number; readonly watched: true }
  /** The worker does not reach the store for so many times its lease. Everything else goes on, and no other action is performed until then. */
  | {
      readonly kind: 'cut off from the store';
      readonly worker: number;
      readonly leases: number;
      readonly watched: true;
    }
  | { readonly kind: 'rebuild'; readonly draw: number }
  | { readonly kind: 'cancel a rebuild'; readonly draw: number }
  | { readonly kind: 'rebuild in place'; readonly draw: number }
  | { readonly kind: 'take a snapshot'; readonly draw: number }
  | { readonly kind: 'rebuild from a snapshot'; readonly draw: number; readonly inPlace: boolean }
  | { readonly kind: 'activate'; readonly draw: number }
  | { readonly kind: 'roll back'; readonly draw: number }
  | { readonly kind: 'retire'; readonly draw: number }
  | { readonly kind: 'retry dead letters'; readonly draw: number; readonly mended: boolean }
  | { readonly kind: 'discard dead letters'; readonly draw: number }
  /** An append stays open for so long, then rolls back or commits late. */
  | { readonly kind: 'append slowly'; readonly seconds: number; readonly commits: boolean }
  /** A transaction holds a stream for so long. No other fault is active meanwhile. */
  | { readonly kind: 'hold a stream'; readonly seconds: number }
  /** Writers claim the same unique values while their inline version is rebuilt, copied and paused. Other faults go on. */
  | { readonly kind: 'claim values'; readonly seconds: number; readonly draw: number }
  /** An event can't be folded, and clients read its row, until it is retried with fixed code. No other fault is active meanwhile. */
  | { readonly kind: 'fail for a while' }
  /** The fold of an event blocks its process for so many times its lease. No other fault is active meanwhile. */
  | { readonly kind: 'a slow event'; readonly leases: number }
  /** Events of a megabyte each: so many times as much as a process has memory for. */
  | { readonly kind: 'large events'; readonly heaps: number };

export type ActionKind = Action['kind'];

/** One step of a round: a pause, then an action. */
export interface Step {
  readonly pauseMs: number;
  readonly action: Action;
}

// How often each is performed in one deal: together about a minute of work.
const deck: Readonly<Record<ActionKind, number>> = {
  kill: 5,
  stall: 4,
  restart: 2,
  deploy: 2,
  'kill a gateway': 2,
  'restart a gateway': 2,
  freeze: 6,
  'clock jump': 4,
  delay: 3,
  'half-open': 2,
  'one-way stall': 3,
  'split packets': 2,
  'cut after commit': 5,
  'cut sessions': 4,
  'restart PostgreSQL': 2,
  promote: 1,
  'promote without the tail': 1,
  'disk full': 1,
  'restart the store': 4,
  'store away': 2,
  'cut off from the store': 2,
  rebuild: 4,
  'rebuild in place': 2,
  'cancel a rebuild': 2,
  'take a snapshot': 3,
  'rebuild from a snapshot': 2,
  activate: 3,
  'roll back': 2,
  retire: 1,
  'retry dead letters': 3,
  'discard dead letters': 3,
  'append slowly': 3,
  'hold a stream': 2,
  'claim values': 2,
  'fail for a while': 2,
  'a slow event': 1,
  'large events': 1,
};

/** The names for `--without`: those of the actions with `-` for each space. */
export const actionNames: ReadonlyMap<string, ActionKind> = new Map(
  (Object.keys(deck) as ActionKind[]).map((kind) => [kind.toLowerCase().replaceAll(' ', '-'), kind]), // the keys of the deck
);

/**
 * The steps of a run, without end: the same seed always yields the same steps. A deal begins with one action of each kind, in an order of
 * its own, so a short
 * run includes all kinds; then come the others, shuffled.
 */
export function* plan(seed: number, without: ReadonlySet<ActionKind> = new Set()): Generator<Step, never> {
  const random = seeded(seed);
  const kinds = [...actionNames.values()].filter((kind) => !without.has(kind));
  if (kinds.length === 0) throw new Error('Expected at least one action: --without leaves none.');
  for (;;) {
    const others = kinds.flatMap((kind) => Array.from({ length: deck[kind] - 1 }, () => kind));
    for (const kind of [...shuffled(kinds, random), ...shuffled(others, random)]) {
      // Some actions shall overlap with others.
      const pauseMs = Math.round(random() < 0.25 ? 0 : 50 + random() * 1_000);
      yield { pauseMs, action: drawn(kind, random) };
    }
  }
}

function shuffled(cards: readonly ActionKind[], random: () => number): readonly ActionKind[] {
  const left = [...cards];
  return cards.flatMap(() => left.splice(Math.floor(random() * left.length), 1));
}

function drawn(kind: ActionKind, random: () => number): Action {
  const worker = Math.floor(random() * workers);
  const gateway = Math.floor(random() * gateways);
  const draw = round(random());
  const at: At = draw < 0.5 ? { role: 'worker', index: worker } : { role: 'gateway', index: gateway };
  const network: NetworkOf = random() < 0.25 ? 'traffic' : random() < 0.4 ? { ...at, to: 'store' } : at;
  const seconds = round(1 + random() * 4);
  switch (kind) {
    case 'kill':
      return { kind, worker, watched: draw < 0.4 };
    case 'stall':
      return { kind, worker, leases: round(1.2 + random() * 1.5), watched: draw < 0.4 };
    case 'restart':
    case 'deploy':
      return { kind, worker };
    case 'kill a gateway':
    case 'restart a gateway':
      return { kind, gateway };
    case 'freeze':
      // 5 ms to 5 s, evenly spread on a logarithmic scale.
      return { kind, at, ms: Math.round(5 * 1_000 ** random()) };
    case 'clock jump':
      return { kind, at, ms: Math.round((random() < 0.5 ? -1 : 1) * 100 * 36_000 ** random()) };
    case 'delay':
      return { kind, at: network, ms: Math.round(2 + random() * 150), seconds };
    case 'half-open':
      return { kind, at: network, seconds: round(2 + random() * 8) };
    case 'one-way stall':
      return { kind, at: network, from: random() < 0.5 ? 'server' : 'client', seconds };
    case 'split packets':
      return { kind, at: network, seconds, draw };
    case 'cut after commit':
      return { kind, at: network };
    case 'cut sessions':
      return { kind, share: round(0.1 + random() * 0.9), draw, of: random() < 0.6 ? 'log' : 'store' };
    case 'restart PostgreSQL':
      return { kind, how: draw < 0.5 ? 'fast' : 'immediate' };
    case 'promote':
      return { kind };
    case 'promote without the tail':
      return { kind, ms: Math.round(100 + random() * 1_400) };
    case 'disk full':
      return { kind, ms: Math.round(200 + random() * 1_500) };
    case 'restart the store':
      return draw < 0.5
        ? { kind, how: 'crash', seconds }
        : { kind, how: draw < 0.75 ? 'immediate' : 'fast', seconds: 0 };
    case 'store away':
      return { kind, how: draw < 0.5 ? 'down' : 'silent', seconds, watched: true };
    case 'cut off from the store':
      return { kind, worker, leases: round(1.2 + random() * 1.5), watched: true };
    case 'retry dead letters':
      return { kind, draw, mended: random() < 0.6 };
    case 'rebuild from a snapshot':
      return { kind, draw, inPlace: random() < 0.4 };
    case 'append slowly':
      return { kind, seconds: round(0.3 + random() * 2), commits: draw < 0.5 };
    case 'hold a stream':
      // Shorter than the time for which an append waits.
      return { kind, seconds: round(1.5 + random() * 2) };
    case 'claim values':
      return { kind, seconds: round(seconds + 2), draw };
    case 'fail for a while':
      return { kind };
    case 'a slow event':
      return { kind, leases: round(1.6 + random() * 0.4) };
    case 'large events':
      return { kind, heaps: round(1.1 + random() * 0.3) };
    case 'rebuild':
    case 'rebuild in place':
    case 'cancel a rebuild':
    case 'take a snapshot':
    case 'activate':
    case 'roll back':
    case 'retire':
    case 'discard dead letters':
      return { kind, draw };
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** `kill worker=1 watched=true` */
export function describeAction({ kind, ...details }: Action): string {
  return [kind, ...Object.entries(details).map(([name, value]) => `${name}=${describeDetail(value)}`)].join(' ');
}

function describeDetail(value: Exclude<NetworkOf, string> | string | number | boolean): string {
  if (typeof value !== 'object') return String(value);
  return `${value.role} ${value.index}${value.to ? ` to the ${value.to}` : ''}`;
}
