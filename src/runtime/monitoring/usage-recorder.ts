import type { Logger } from 'pino';
import type { Queryable } from '../../store/postgres/statement.ts';
import {
  addUsage,
  markRecording,
  otherClients,
  pruneUsage,
  type UsageCount,
} from '../../store/registry/field-usage.ts';
import { createRounds } from '../scheduling/rounds.ts';

/** Who asks, as far as usage tells clients apart. */
export interface UsageClient {
  readonly name: string;
  readonly version: string;
  /** The versions that it pins: `cart_summary@1,customer_profile@2`. */
  readonly pins: string;
}

/** Counts what clients ask for, in memory, and adds it to the database every few seconds. */
export interface UsageRecorder {
  /** One operation. `paths` is the same object for the same document, `more` is what its variables add. */
  count(client: UsageClient, paths: readonly string[], more: ReadonlySet<string>): void;
  /** Writes what is counted so far. @throws RefoldError where the database can't be reached; what is counted stays, then */
  flush(): Promise<void>;
  /** Writes the rest. */
  stop(): Promise<void>;
}

export interface UsageRecorderOptions {
  readonly db: Queryable;
  /** False: this gateway counts nothing, and says so. */
  readonly usage: { readonly keepDays: number; readonly maxClients: number } | false;
  readonly logger: Logger;
}

// A crash loses what was counted since.
const flushMilliseconds = 10_000;
const hour = 3_600_000;
// Pairs of document and client before documents are taken apart; both are what clients make of them.
const mostPending = 5000;
// Pairs of path and client in one interval; beyond them, who asks is not told any more.
const mostEntries = 50_000;

export function createUsageRecorder({ db, usage, logger }: UsageRecorderOptions): UsageRecorder {
  let documents = new Map<readonly string[], Map<string, number>>();
  let pending = 0;
  let counted = new Map<string, number>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  let writing = Promise.resolve();

  function add(key: string, operations: number): void {
    const known = counted.get(key);
    if (known !== undefined || counted.size < mostEntries) counted.set(key, (known ?? 0) + operations);
    else {
      const [path, , , pins] = key.split('\0');
      const others = `${path}\0${otherClients}\0\0${pins}`; // bounded by the schema
      counted.set(others, (counted.get(others) ?? 0) + operations);
    }
  }

  function takeApart(): void {
    for (const [paths, clients] of documents)
      for (const [client, operations] of clients) for (const path of paths) add(`${path}\0${client}`, operations);
    documents = new Map();
    pending = 0;
  }

  /** After what is being written: whoever reads then finds all that was counted before. */
  function flush(): Promise<void> {
    const next = writing.catch(() => {}).then(write);
    writing = next;
    return next;
  }

  async function write(): Promise<void> {
    takeApart();
    if (counted.size === 0 || !usage) return;
    const sent = counted;
    counted = new Map();
    try {
      await addUsage(db, [...sent].map(toCount), usage.maxClients);
    } catch (error) {
      for (const [key, operations] of sent) add(key, operations);
      throw error;
    }
  }

  async function round(): Promise<void> {
    if (Date.now() - lookedAt > hour) {
      await markRecording(db, usage !== false);
      if (usage) await pruneUsage(db, usage.keepDays);
      lookedAt = Date.now();
    }
    await flush();
  }

  const warn = (error: unknown) =>
    logger.warn({ err: error }, `what clients asked for could not be written; trying again. ${String(error)}`);
  const rounds = createRounds(flushMilliseconds, round, warn);

  return {
    count({ name, version, pins }, paths, more) {
      if (!usage) return;
      const client = `${name}\0${version}\0${pins}`;
      if (pending >= mostPending) takeApart();
      let clients = documents.get(paths);
      if (!clients) {
        clients = new Map();
        documents.set(paths, clients);
      }
      const known = clients.get(client);
      if (known === undefined) pending++;
      clients.set(client, (known ?? 0) + 1);
      for (const path of more) add(`${path}\0${client}`, 1);
    },
    flush,
    async stop() {
      await rounds.stop();
      await flush().catch(warn);
    },
  };
}

function toCount([key, operations]: readonly [string, number]): UsageCount {
  const [path = '', client = '', clientVersion = '', pins = ''] = key.split('\0');
  return { path, client, clientVersion, pins, operations };
}
