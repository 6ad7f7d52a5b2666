import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { EventPace } from '../../events/event-pace.ts';
import type { Reactor } from '../../reactors/reactor.ts';
import { type VersionedReactor, versionedReactors } from '../../reactors/versioned-reactor.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readRunnableReactors } from '../../store/reactors/reactors.ts';
import type { MaintainedUnit } from '../processors/maintained-unit.ts';
import type { SlowEvents } from '../scheduling/slow-events.ts';
import { beginNewestVersion } from './begin-version.ts';
import { createReactorProcessor, type ReactorProcessor } from './reactor-processor.ts';

export interface ReactorUnitsOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly reactors: readonly Reactor[];
  /** Identifies this process in the audit log. */
  readonly owner: string;
  /** How long the release of a reactor waits for running handlers, in milliseconds. */
  readonly grace: number;
  readonly slowEvents: SlowEvents;
  readonly logger: Logger;
}

/** Lists a unit for each declared reactor that is not paused. Also passes requests for dead letters to the reactors that run here. */
export function createReactorUnits(options: ReactorUnitsOptions): () => Promise<readonly MaintainedUnit[]> {
  const { db } = options;
  const reactors = versionedReactors(options.reactors);
  const processors = new Map<string, ReactorProcessor>();
  const processId = randomUUID();
  return async () => {
    if (reactors.length === 0) return [];
    const runnable = new Map((await readRunnableReactors(db)).map((row) => [row.name, row]));
    return reactors.flatMap((reactor) => {
      const row = runnable.get(reactor.name);
      if (!row) return [];
      // If another process owns the reactor by now, this has no effect: the owner reads the request too.
      if (row.requestedKeys.length > 0) processors.get(reactor.name)?.redeliver(row.requestedKeys);
      return [reactorUnit({ ...options, processId }, processors, reactor, row.generation)];
    });
  };
}

function reactorUnit(
  { log, processId, owner, grace, slowEvents, logger }: ReactorUnitsOptions & { readonly processId: string },
  processors: Map<string, ReactorProcessor>,
  reactor: VersionedReactor,
  generation: number,
): MaintainedUnit {
  return {
    unit: { kind: 'reactor', name: reactor.name, version: 0, partition: 0 },
    // The key changes with each operation of an operator. The owner then releases the unit, and the next owner starts from the rows.
    key: `reactor ${reactor.name} ${generation}`,
    id: reactor.name,
    filter: reactor.filter,
    async start(db, claim) {
      // Handlers of an earlier ownership in this process must not run beside the new ones.
      await processors.get(reactor.name)?.interrupt?.();
      const begun = await beginNewestVersion(db, claim, reactor, owner);
      const pace = new EventPace(slowEvents(reactor.name));
      const processor = await createReactorProcessor({
        db,
        log,
        reactor: begun,
        claim,
        processId,
        grace,
        pace,
        logger,
      });
      processors.set(reactor.name, processor);
      return processor;
    },
  };
}
