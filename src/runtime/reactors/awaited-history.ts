import type { Logger } from 'pino';
import type { RecordedEvent } from '../../events/event.ts';
import { earlierPosition, type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import { isVersionUnknown, unreadable } from '../../events/read-payload.ts';
import type { BegunReactor } from '../../reactors/begun-reactor.ts';
import { awaitedName } from '../../reactors/versioned-reactor.ts';
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
  readonly reactor: BegunReactor;
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
  const declared = reactor.awaits;
  const missed = declared.filter((type) => !awaits.includes(type));
  const undeclared = awaited.filter((type) => !declared.includes(type));
  if (undeclared.length > 0)
    logger.warn(
      { reactor: reactor.name, types: undeclared },
      `${reactor.name}: handlers wait for ${undeclared.join(', ')}, which 'waitsFor' does not name here. They wait for a process that names it; 'refold reactor show ${reactor.name}' lists them.`,
    );
  if (missed.length > 0 && oldest !== null) await storeAwaited(options, missed, neededSince(options, missed, oldest));
  if (missed.length > 0 || awaits.length !== declared.length) await setAwaits(db, claim, declared);
  return declared.length > 0 || hasInstances;
}

/** Where the log may have missed events that a handler needs: no handler of a version waits for events before its first one. */
function neededSince(
  { reactor, claim }: WaitingEventsOptions,
  missed: readonly string[],
  oldest: GlobalPosition,
): GlobalPosition {
  const versions = reactor.versions.filter((one) =>
    [...one.awaits.values()].some((type) => missed.includes(awaitedName(one, type))),
  );
  const begins = versions.map(({ version }) => laterPosition(oldest, reactor.beginOf(version) ?? claim.checkpoint));
  return begins.reduce(earlierPosition, claim.checkpoint);
}

async function storeAwaited(
  { db, log, reactor, claim, logger }: WaitingEventsOptions,
  missed: readonly string[],
  since: GlobalPosition,
): Promise<void> {
  const isMissed = (type: string) =>
    reactor.versions.some((version) => missed.includes(awaitedName(version, version.awaits.get(type) ?? '')));
  const filter = reactor.filter.map(({ family, types }) => ({ family, types: types.filter(isMissed) }));
  const upTo = claim.checkpoint;
  for (let after = since; after < upTo; ) {
    const page = await log.readAll({ after, upTo, filter, limit: pageSize });
    const found = page.events.flatMap((event): readonly AwaitedEvent[] => {
      const problem = unreadable(event);
      if (isVersionUnknown(problem)) throw problem;
      const { keyError } = awaitedBy(reactor, event);
      if (keyError)
        logger.error(
          { reactor: reactor.name, event: event.id, err: keyError.error },
          `${reactor.name}: nobody can wait for '${event.type}' at position ${event.position}, because its key can't be computed.`,
        );
      return awaitedEvents(reactor, event).filter(({ type }) => missed.includes(type));
    });
    if (found.length > 0) await insertAwaitedEvents(db, claim, found);
    after = page.upTo;
  }
}

/** The event, for each version whose handlers may wait for it. */
export function awaitedEvents(reactor: BegunReactor, event: RecordedEvent): readonly AwaitedEvent[] {
  const { position, id } = event;
  return awaitedBy(reactor, event).keys.map(({ type, key }) => ({ position, id, type, key }));
}
