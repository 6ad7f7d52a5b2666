import { setTimeout as pause } from 'node:timers/promises';
import { seeded } from '../../test/support/account-traffic.ts';
import type { Ledger } from '../ledger.ts';
import { type FeedClient, feeds, startFeed } from './feeds.ts';
import { createOperations } from './operations.ts';
import type { Answer } from './told.ts';

export interface Clients {
  /** The responses that they got since the list was last cleared. */
  readonly answers: readonly Answer[];
  readonly feeds: readonly FeedClient[];
  readonly surprises: readonly string[];
  /** Waits for operations under way; sends none until `resume`. The feeds continue. */
  pause(): Promise<void>;
  resume(): void;
  forget(): void;
  /** For so long, they claim unique values, one after the other. */
  claimFor(milliseconds: number): void;
  /** These feeds drop their cursors and subscribe again. */
  beginAnew(which: (feed: FeedClient) => boolean): void;
  /** Permanently. */
  stop(): Promise<void>;
}

export interface ClientsOptions {
  readonly gateways: readonly string[];
  readonly ledger: Ledger;
  readonly seed: number;
}

const clients = 6;
/** Average pause between two operations of one client. */
const thinkMs = 120;
const claimingMs = 20;

/** Clients over HTTP, each with its own last position, and feeds. They wait for `resume`. */
export function startClients(options: ClientsOptions): Clients {
  const { gateways, ledger, seed } = options;
  let answers: Answer[] = [];
  const surprises: string[] = [];
  const stopping = new AbortController();
  let gate: Promise<void>;
  let open = () => {};
  const close = () => {
    gate = new Promise((resolve) => {
      open = resolve;
    });
  };
  close();
  const underWay = new Set<Promise<void>>();
  let claimingUntil = 0;
  const hear = (answer: Answer) => void answers.push(answer);
  const shared = createOperations({ gateways, ledger, hear });

  async function live(number: number): Promise<void> {
    const random = seeded(seed * 1_000 + 500 + number);
    const client = shared.client(number, random);
    for (await gate; !stopping.signal.aborted; await gate) {
      const claiming = Date.now() < claimingUntil;
      const operation = (claiming ? client.claim() : client.next()).catch((error: unknown) => {
        surprises.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
      });
      underWay.add(operation);
      await operation;
      underWay.delete(operation);
      await pause(random() * 2 * (claiming ? claimingMs : thinkMs));
    }
  }

  const loops = Array.from({ length: clients }, (_, number) => live(number));
  const subscribed = feeds.map((feed, number) =>
    startFeed(feed, gateways, seeded(seed * 1_000 + 700 + number), hear, stopping.signal),
  );
  return {
    get answers() {
      return answers;
    },
    feeds: subscribed,
    surprises,
    async pause() {
      close();
      await Promise.all(underWay);
    },
    resume: () => open(),
    forget() {
      answers = [];
    },
    claimFor(milliseconds) {
      claimingUntil = Date.now() + milliseconds;
    },
    beginAnew(which) {
      for (const client of subscribed) if (which(client)) client.beginAnew();
    },
    async stop() {
      stopping.abort();
      open();
      await Promise.all([...loops, ...subscribed.map(({ ended }) => ended)]);
    },
  };
}
