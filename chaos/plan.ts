import { seeded } from '../test/support/account-traffic.ts';

/** What can be done to a running application. */
export type Action =
  /** The process is gone at once. Where it is `watched`, nothing else is done until its work has other owners. */
  | { readonly kind: 'kill'; readonly worker: number; readonly watched: boolean }
  /** The process hangs for so many times its lease, then goes on as if nothing had been. */
  | { readonly kind: 'stall'; readonly worker: number; readonly leases: number; readonly watched: boolean }
  /** The process is asked to end, and another one is started in its place. */
  | { readonly kind: 'restart'; readonly worker: number }
  /** The process ends, and one that declares the next version of a projection is started in its place. */
  | { readonly kind: 'deploy'; readonly worker: number }
  /** The server ends this share of the sessions. */
  | { readonly kind: 'cut sessions'; readonly share: number; readonly draw: number }
  | { readonly kind: 'restart PostgreSQL'; readonly how: 'fast' | 'immediate' }
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
  /** An append stays under way for so long, and is rolled back or committed late. */
  | { readonly kind: 'append slowly'; readonly seconds: number; readonly commits: boolean };

export type ActionKind = Action['kind'];

/** One step of a round: a pause, then something is done. */
export interface Step {
  readonly pauseMs: number;
  readonly action: Action;
}

export const workers = 3;

// How often each is done in one deal: together about a minute of work.
const deck: Readonly<Record<ActionKind, number>> = {
  kill: 6,
  stall: 5,
  restart: 2,
  deploy: 2,
  'cut sessions': 5,
  'restart PostgreSQL': 2,
  rebuild: 5,
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
};

/** The steps of a run, without end: the same ones for the same seed. Each deal has all kinds in an order of its own. */
export function* plan(seed: number): Generator<Step, never> {
  const random = seeded(seed);
  for (;;) {
    const cards = Object.entries(deck).flatMap(([kind, count]) =>
      Array.from({ length: count }, () => kind as ActionKind),
    ); // the keys of the deck
    for (let left = cards.length; left > 0; left--) {
      const [kind] = cards.splice(Math.floor(random() * left), 1);
      // Some things shall happen in the middle of others.
      const pauseMs = Math.round(random() < 0.25 ? 0 : 50 + random() * 1_000);
      yield { pauseMs, action: drawn(kind as ActionKind, random) }; // one for each that is left
    }
  }
}

function drawn(kind: ActionKind, random: () => number): Action {
  const worker = Math.floor(random() * workers);
  const draw = round(random());
  switch (kind) {
    case 'kill':
      return { kind, worker, watched: draw < 0.4 };
    case 'stall':
      return { kind, worker, leases: round(1.2 + random() * 1.5), watched: draw < 0.4 };
    case 'restart':
    case 'deploy':
      return { kind, worker };
    case 'cut sessions':
      return { kind, share: round(0.1 + random() * 0.9), draw };
    case 'restart PostgreSQL':
      return { kind, how: draw < 0.5 ? 'fast' : 'immediate' };
    case 'retry dead letters':
      return { kind, draw, mended: random() < 0.6 };
    case 'rebuild from a snapshot':
      return { kind, draw, inPlace: random() < 0.4 };
    case 'append slowly':
      return { kind, seconds: round(0.3 + random() * 2), commits: draw < 0.5 };
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
  return [kind, ...Object.entries(details).map(([name, value]) => `${name}=${value}`)].join(' ');
}
