import { setTimeout as pause } from 'node:timers/promises';
import { ConcurrencyConflict, type EventLog, type ExpectedVersion, RefoldError } from '../src/index.ts';
import type { StreamAppend } from '../src/store/log/append-request.ts';
import { sqlStateOf } from '../src/store/postgres/database-errors.ts';
import { seeded } from '../test/support/account-traffic.ts';
import { type Draft, draftAppend } from './drafts.ts';
import { acknowledge, type Ledger, type LedgerEntry } from './ledger.ts';

export interface Traffic {
  /** Waits for appends under way; sends none until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  /** Permanently. */
  stop(): Promise<void>;
  /** Errors that no fault explains. */
  readonly surprises: readonly string[];
}

const writers = 12;
/** How soon a writer retries while the server is away. */
const retryMs = 50;

/** Appends of known content by several callers at once. Each is entered in the ledger before it is sent. */
export function startTraffic(log: EventLog, ledger: Ledger, seed: number, perSecond: number): Traffic {
  const surprises: string[] = [];
  let stopped = false;
  let gate = Promise.resolve();
  let open = () => {};
  const underWay = new Set<Promise<void>>();

  async function write(writer: number): Promise<void> {
    const random = seeded(seed * 1_000 + writer);
    for (await gate; !stopped; await gate) {
      const start = performance.now();
      const append = appendDraft(log, ledger, writer, draftAppend(random)).catch((error: unknown) => {
        surprises.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
      });
      underWay.add(append);
      await append;
      underWay.delete(append);
      await pause(Math.max(0, (writers * 1_000) / perSecond - (performance.now() - start)));
    }
  }

  const loops = Array.from({ length: writers }, (_, writer) => write(writer));
  return {
    surprises,
    async pause() {
      gate = new Promise((resolve) => {
        open = resolve;
      });
      await Promise.all(underWay);
    },
    resume: () => open(),
    async stop() {
      stopped = true;
      open();
      await Promise.all(loops);
    },
  };
}

/** Appends until the outcome is known, if it can be known. */
export async function appendDraft(log: EventLog, ledger: Ledger, writer: number, draft: Draft): Promise<void> {
  const expectedVersion = draft.exact ? await versionOf(log, draft) : 'any';
  const entry = beginEntry(ledger, writer, draft);
  const streams = streamsOf(draft, entry.append, expectedVersion);
  const request = { streams, ...(draft.keyed ? { idempotencyKey: `append ${entry.append}` } : {}) };
  for (;;) {
    const sentAt = Date.now();
    try {
      const { events } = await log.appendToStreams(request);
      const positions = events.map(({ position }) => position);
      acknowledge(entry, positions, sentAt);
      return;
    } catch (error) {
      if (error instanceof ConcurrencyConflict) {
        entry.outcome = 'refused';
        return;
      }
      if (codeOf(error) !== 'DATABASE_UNAVAILABLE') entry.outcome = 'unknown';
      else if (entry.outcome === 'under way') entry.outcome = 'refused';
      if (!isAway(error)) throw error;
      await pause(retryMs);
      if (!draft.keyed) return;
    }
  }
}

/** Enters a draft in the ledger before any of it is sent. */
export function beginEntry(ledger: Ledger, writer: number, { parts }: Draft): LedgerEntry {
  return ledger.begin(
    writer,
    parts.map(({ family, streamId, events }) => ({
      family: family.name,
      streamId,
      types: events(0).map(({ type }) => type),
    })),
  );
}

export function streamsOf({ parts }: Draft, append: number, expectedVersion: ExpectedVersion): StreamAppend[] {
  // The events of each part belong to its family.
  return parts.map(
    ({ family, streamId, events }) => ({ family, streamId, events: events(append), expectedVersion }) as StreamAppend,
  );
}

/** Retries while the server is away. */
async function versionOf(log: EventLog, { parts: [part] }: Draft): Promise<ExpectedVersion> {
  if (!part) return 'any';
  for (;;) {
    try {
      const version = await log.streamVersion(part.family, part.streamId);
      return version === 0 ? 'no-stream' : version;
    } catch (error) {
      if (!isAway(error)) throw error;
      await pause(retryMs);
    }
  }
}

const outages = new Set(['DATABASE_UNREACHABLE', 'DATABASE_UNAVAILABLE', 'OUTCOME_UNKNOWN']);

/** Whether the server was away, out of disk, or the session was terminated: the effects of faults. */
export function isAway(error: unknown): boolean {
  const code = codeOf(error);
  // Class 53: insufficient resources.
  return code !== undefined && (outages.has(code) || sqlStateOf(error)?.startsWith('53') === true);
}

/** As text, because versions of the product have different codes. */
function codeOf(error: unknown): string | undefined {
  return error instanceof RefoldError ? error.code : undefined;
}
