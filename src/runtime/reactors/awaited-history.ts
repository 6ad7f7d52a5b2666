import type { Logger } from 'pino';
import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { isVersionUnknown, unreadable } from '../../events/read-payload.ts';
import type { Reactor } from '../../reactors/reactor.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import {
  type AwaitedEvent,
  insertAwaitedEvents,
  readAwaitingState,
  setAwaits,
} from '../../store/reactors/awaited-events.ts';
import { awaitedBy } from './reactor-task.ts';

export interface WaitingEventsOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly reactor: Reactor;
  readonly claim: ProcessorClaim;
  readonly logger: Logger;
}

// Events that are read and stored at once.
const pageSize = 1000;

/**
 * Stores awaited events up to the checkpoint that no owner has stored: of types that the declaration has named since, or that an operator skipped.
 * Only events that a waiting event or a dead letter may need. Returns whether there is anything that waits, or may wait.
 */
export async function storeMissedAwaited(options: WaitingEventsOptions): Promise<boolean> {
  const { db, reactor, claim, logger } = options;
  const { awaits, awaited, oldest, hasInstances } = await readAwaitingState(db, claim.name);
  const declared = [...reactor.awaits.values()];
  const missed = declared.filter((type) => !awaits.includes(type));
  const undeclared = awaited.filter((type) => !declared.includes(type));
  if (undeclared.length > 0)
    logger.warn(
      { reactor: reactor.name, types: undeclared },
      `${reactor.name}: handlers wait for ${undeclared.join(', ')}, which 'waitsFor' does not name here. They wait for a process that names it; 'refold reactor show ${reactor.name}' lists them.`,
    );
  if (missed.length > 0 && oldest !== null) await storeAwaited(options, missed, oldest);
  if (missed.length > 0 || awaits.length !== declared.length) await setAwaits(db, claim, declared);
  return declared.length > 0 || hasInstances;
}

async function storeAwaited(
  { db, log, reactor, claim, logger }: WaitingEventsOptions,
  missed: readonly string[],
  oldest: GlobalPosition,
): Promise<void> {
  const filter = reactor.filter.map(({ family, types }) => ({
    family,
    types: types.filter((type) => missed.includes(reactor.awaits.get(type) ?? '')),
  }));
  const upTo = claim.checkpoint;
  for (let after = oldest; after < upTo; ) {
    const page = await log.readAll({ after, upTo, filter, limit: pageSize });
    const found = page.events.flatMap((event) => {
      const problem = unreadable(event);
      if (isVersionUnknown(problem)) throw problem;
      const { key, keyError } = awaitedBy(reactor, event);
      if (keyError)
        logger.error(
          { reactor: reactor.name, event: event.id, err: keyError.error },
          `${reactor.name}: nobody can wait for '${event.type}' at position ${event.position}, because its key can't be computed.`,
        );
      return awaitedEvent(reactor, event, key) ?? [];
    });
    if (found.length > 0) await insertAwaitedEvents(db, claim, found);
    after = page.upTo;
  }
}

/** An event as it is stored; undefined if nobody waits for its type, or if it has no key. */
export function awaitedEvent(
  { awaits }: Reactor,
  { position, id, type }: RecordedEvent,
  key: string | undefined,
): AwaitedEvent | undefined {
  const storedType = awaits.get(type);
  return key === undefined || storedType === undefined ? undefined : { position, id, type: storedType, key };
}
