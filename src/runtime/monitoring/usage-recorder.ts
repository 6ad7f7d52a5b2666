import type { Logger } from 'pino';
import {
  addUsage,
  markRecording,
  otherClients,
  pruneUsage,
  type UsageCount,
} from '../../store/registry/field-usage.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { reasonOf } from '../../thrown.ts';
import { startPeriodicTask } from '../scheduling/periodic-task.ts';

/** A client, as usage identifies it. */
export interface UsageClient {
  readonly name: string;
  readonly version: string;
  /** The versions that it pins, for example `cart_summary@1,customer_profile@2`. */
  readonly pins: string;
}

/** Counts which fields clients use in memory, and adds the counts to the database every few seconds. */
export interface UsageRecorder {
  /** Counts one operation. `paths` is the same object for the same document; `more` are the paths that its variables add. */
  count(client: UsageClient, paths: readonly string[], more: ReadonlySet<string>): void;
  /** Writes the counts so far. @throws RefoldError if the database is unreachable; the counts are kept */
  flush(): Promise<void>;
  /** Stops, and writes the remaining counts. */
  stop(): Promise<void>;
}

export interface UsageRecorderOptions {
  readonly db: Queryable;
  /** False: this gateway counts nothing, and records that. */
  readonly usage: { readonly keepDays: number; readonly maxClients: number } | false;
  readonly logger: Logger;
}

// A crash loses the counts of this time.
const flushMilliseconds = 10_000;
const hour = 3_600_000;
// The most pairs of document and client before documents are split into paths. Clients control both, so their number must be bounded.
const maxPending = 5000;
// The most pairs of path and client in one interval. Further clients are counted together as others.
const maxEntries = 50_000;

export function createUsageRecorder({ db, usage, logger }: UsageRecorderOptions): UsageRecorder {
  let documents = new Map<readonly string[], Map<string, number>>();
  let pending = 0;
  let counted = new Map<string, number>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  let writing = Promise.resolve();

  function add(key: string, operations: number): void {
    const known = counted.get(key);
    if (known !== undefined || counted.size < maxEntries) counted.set(key, (known ?? 0) + operations);
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

  /** Waits for the write in progress, so that a reader then finds all earlier counts. */
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

  async function pruneAndFlush(): Promise<void> {
    if (performance.now() - lookedAt > hour) {
      await markRecording(db, usage !== false);
      if (usage) await pruneUsage(db, usage.keepDays);
      lookedAt = performance.now();
    }
    await flush();
  }

  const warn = (error: unknown) =>
    logger.warn({ err: error }, `field usage not saved; trying again. ${reasonOf(error)}`);
  const task = startPeriodicTask(flushMilliseconds, pruneAndFlush, warn);

  return {
    count({ name, version, pins }, paths, more) {
      if (!usage) return;
      const client = `${name}\0${version}\0${pins}`;
      if (pending >= maxPending) takeApart();
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
      await task.stop();
      await flush().catch(warn);
    },
  };
}

function toCount([key, operations]: readonly [string, number]): UsageCount {
  const [path = '', client = '', clientVersion = '', pins = ''] = key.split('\0');
  return { path, client, clientVersion, pins, operations };
}
