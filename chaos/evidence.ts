import { beginning, type RecordedEvent } from '../src/index.ts';
import { readStepsOf } from './audit.ts';
import type { FailOver } from './fail-overs.ts';
import type { Evidence, JudgedStore } from './judges/judge.ts';
import type { World } from './world.ts';

/** How often a worker polls for free work, and the grace for a busy machine until a claim is written. */
const lookMs = 500;
const graceMs = 3_000;
/** While a server process executes a statement, it notices within this time that the client is gone (`client_connection_check_interval`). */
const noticeMs = 5_000;

/** A disconnected feed resumes within this time on a busy machine. */
const feedPatienceMs = 30_000;

export interface EvidenceOf extends Pick<World, 'db' | 'log' | 'ledger' | 'storeOutages' | 'heldStreams' | 'trials'> {
  /** Of all stores, that of the log first. */
  readonly databases: readonly JudgedStore[];
  readonly clients: Pick<World['clients'], 'answers' | 'feeds'>;
  readonly options: Pick<World['options'], 'ownership' | 'leaseSeconds'>;
}

export async function readEvidence(
  { db, databases, log, ledger, clients, options, storeOutages, heldStreams, trials }: EvidenceOf,
  failOvers: readonly FailOver[],
): Promise<Evidence> {
  const events: RecordedEvent[] = [];
  const upTo = await log.head();
  for (let after = beginning; after < upTo; ) {
    const page = await log.readAll({ after, upTo, limit: 10_000 });
    events.push(...page.events);
    after = page.upTo;
  }
  const leaseMs = options.leaseSeconds * 1_000;
  return {
    db,
    stores: databases,
    ledger,
    answers: clients.answers,
    feeds: clients.feeds,
    feedPatienceMs,
    events,
    steps: await readStepsOf(databases),
    failOvers,
    boundMs: {
      kill: (options.ownership === 'lease' ? leaseMs : noticeMs) + lookMs + graceMs,
      stall: leaseMs + lookMs + graceMs,
      'cut off': leaseMs + lookMs + graceMs,
    },
    storeOutages,
    heldStreams,
    trials,
  };
}
