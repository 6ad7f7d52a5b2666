import type { Logger } from 'pino';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { RefoldError } from '../../errors.ts';
import type { SentAppends } from '../../store/event-log.ts';
import type { FoldedStream } from '../../store/log/stream-state.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Processor } from '../consumers/event-source.ts';

// From an append on the same machine to a batch of a large page, in seconds.
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics of what this process does: appends, commands, batches, connections. */
export interface WorkMetrics {
  readonly registry: Registry;
  /** Counts and times one statement of appends. */
  sent(appends: SentAppends): void;
  /** Counts the events that were read for a state. */
  folded(stream: FoldedStream): void;
  /** Times a command and counts its outcome: `ok`, or the code of its error. */
  command<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Times the batches of a processor. */
  timed(processor: Processor): Processor;
  /** Counts that a worker of a Citus cluster has lost rows of a partition. */
  rowsLost(): void;
  /** Counts an event on which code of a version, a reactor or an upcaster worked for a second or longer. */
  slowEvent(of: string): void;
  /** Shows the connections of these pools. */
  pools(pools: Readonly<Record<string, Database>>): void;
}

/** `logger` gets a line for each of them, at the level `debug`. */
export function createWorkMetrics(logger?: Pick<Logger, 'debug' | 'isLevelEnabled'>): WorkMetrics {
  const registry = new Registry();
  const registers = [registry];
  const appendSeconds = new Histogram({
    name: 'refold_append_seconds',
    help: 'Time of a statement that appends, with its commit. Concurrent appends of a process share statements.',
    buckets,
    registers,
  });
  const appends = new Counter({
    name: 'refold_appends_total',
    help: 'Appends by outcome: written, duplicate (of an idempotency key), conflict, refused, failed (the statement).',
    labelNames: ['outcome'],
    registers,
  });
  const appended = new Counter({
    name: 'refold_appended_events_total',
    help: 'Events that this process has appended.',
    registers,
  });
  const commandSeconds = new Histogram({
    name: 'refold_command_seconds',
    help: "Time of a command, from its input to the end of its append, by outcome: ok, or the error's code.",
    labelNames: ['command', 'outcome'],
    buckets,
    registers,
  });
  const eventsRead = new Histogram({
    name: 'refold_state_events_read',
    help: 'Events read to compute the state of a stream that a command or reactor decides on, by family of events. Streams without snapshots are read from their first event.',
    labelNames: ['family'],
    buckets: [0, 10, 100, 1000, 10_000, 100_000],
    registers,
  });
  const batchSeconds = new Histogram({
    name: 'refold_batch_seconds',
    help: 'Time to fold one page of events, or to handle it, by version or reactor. The write of its rows may be part of a later one.',
    labelNames: ['processor'],
    buckets,
    registers,
  });
  const lost = new Counter({
    name: 'refold_rows_lost_total',
    help: 'How often this process found that a worker of a Citus cluster has lost rows of a partition, or their checkpoint, as after a fail-over that lost some.',
    registers,
  });
  const slow = new Counter({
    name: 'refold_slow_events_total',
    help: 'Events on which code of the application worked for a second or longer without a pause, by version or reactor. Nothing else ran in the process meanwhile.',
    labelNames: ['of'],
    registers,
  });
  const showPools = registerPools(registers);

  return {
    registry,
    sent({ seconds, outcomes, events }) {
      if (logger?.isLevelEnabled('debug'))
        logger.debug({ outcomes, durationMs: ms(seconds) }, `${events} events of ${outcomes.length} appends written`);
      appendSeconds.observe(seconds);
      for (const outcome of outcomes) appends.inc({ outcome });
      appended.inc(events);
    },
    folded: ({ state, events }) => eventsRead.observe({ family: state.family.name }, events),
    async command(command, work) {
      const startedAt = performance.now();
      const observe = (outcome: string) => {
        const seconds = (performance.now() - startedAt) / 1000;
        commandSeconds.observe({ command, outcome }, seconds);
        logger?.debug({ command, outcome, durationMs: ms(seconds) }, 'command ended');
      };
      try {
        const result = await work();
        observe('ok');
        return result;
      } catch (error) {
        observe(error instanceof RefoldError ? error.code : 'error');
        throw error;
      }
    },
    timed(processor) {
      const labels = { processor: processor.id.replace(/\/\d+$/, '') };
      return {
        id: processor.id,
        filter: processor.filter,
        checkpoint: processor.checkpoint,
        async process(page) {
          const startedAt = performance.now();
          try {
            return await processor.process(page);
          } finally {
            if (page.events.length > 0) {
              const seconds = (performance.now() - startedAt) / 1000;
              batchSeconds.observe(labels, seconds);
              logger?.debug(
                { ...labels, events: page.events.length, upTo: page.upTo.toString(), durationMs: ms(seconds) },
                'batch processed',
              );
            }
          }
        },
      };
    },
    rowsLost: () => lost.inc(),
    slowEvent: (of) => slow.inc({ of }),
    pools: showPools,
  };
}

function ms(seconds: number): number {
  return Math.round(seconds * 100_000) / 100;
}

/** Registers metrics of pools. Returns a function that sets which. */
function registerPools(registers: Registry[]): WorkMetrics['pools'] {
  let pools: readonly (readonly [string, Database])[] = [];
  new Gauge({
    name: 'refold_pool_connections',
    help: 'Connections of a pool by state: busy, idle.',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      for (const [pool, { pool: connections }] of pools) {
        this.set({ pool, state: 'busy' }, connections.totalCount - connections.idleCount);
        this.set({ pool, state: 'idle' }, connections.idleCount);
      }
    },
  });
  new Gauge({
    name: 'refold_pool_waiting',
    help: 'Statements that wait for a free connection of a pool.',
    labelNames: ['pool'],
    registers,
    collect() {
      for (const [pool, { pool: connections }] of pools) this.set({ pool }, connections.waitingCount);
    },
  });

  new Counter({
    name: 'refold_sql_statements_total',
    help: 'SQL statements that this process has sent, by pool, without those that begin or end a transaction.',
    labelNames: ['pool'],
    registers,
    collect() {
      this.reset();
      for (const [pool, { counts }] of pools) this.inc({ pool }, counts.statements);
    },
  });
  return (given) => {
    pools = Object.entries(given);
  };
}
