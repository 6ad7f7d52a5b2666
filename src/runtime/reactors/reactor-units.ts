import type { Logger } from 'pino';
import type { Reactor } from '../../reactors/reactor.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readRunnableReactors } from '../../store/reactors/reactors.ts';
import type { MaintainedUnit } from '../processors/maintained-unit.ts';
import { createReactorProcessor, type ReactorProcessor } from './reactor-processor.ts';

export interface ReactorUnitsOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly reactors: readonly Reactor[];
  /** How long handlers in work are waited for when a reactor is let go of, in milliseconds. */
  readonly grace: number;
  readonly logger: Logger;
}

/** A unit for each declared reactor that no operator has paused. What was asked of those that run here is passed on to them. */
export function createReactorUnits(options: ReactorUnitsOptions): () => Promise<readonly MaintainedUnit[]> {
  const { db, reactors } = options;
  const processors = new Map<string, ReactorProcessor>();
  return async () => {
    if (reactors.length === 0) return [];
    const runnable = new Map((await readRunnableReactors(db)).map((row) => [row.name, row]));
    return reactors.flatMap((reactor) => {
      const row = runnable.get(reactor.name);
      if (!row) return [];
      // Where another process owns it by now, nothing comes of it: that one is told, too.
      if (row.requestedKeys.length > 0) processors.get(reactor.name)?.redeliver(row.requestedKeys);
      return [reactorUnit(options, processors, reactor, row.generation)];
    });
  };
}

function reactorUnit(
  { log, grace, logger }: ReactorUnitsOptions,
  processors: Map<string, ReactorProcessor>,
  reactor: Reactor,
  generation: number,
): MaintainedUnit {
  return {
    unit: { kind: 'reactor', name: reactor.name, version: 0, partition: 0 },
    // Another one after an operator's step: who has owned it lets go then, and whoever takes it begins anew.
    key: `reactor ${reactor.name} ${generation}`,
    id: reactor.name,
    async start(db, claim) {
      // What it had in work before, in this process, must not run beside what is begun now.
      await processors.get(reactor.name)?.interrupt?.();
      const processor = await createReactorProcessor({ db, log, reactor, claim, grace, logger });
      processors.set(reactor.name, processor);
      return processor;
    },
  };
}
