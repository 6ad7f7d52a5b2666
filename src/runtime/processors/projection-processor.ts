import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { isTracing } from '../../tracing.ts';
import type { EventPage } from '../consumers/event-source.ts';
import { type Completion, createCompletion } from './completion.ts';
import type { MaintainedProcessor } from './maintained-unit.ts';
import { RowWriter, type RowWriterOptions } from './row-writer.ts';
import { tracedFold } from './traced-fold.ts';

export interface ProjectionProcessorOptions extends RowWriterOptions {
  /** Called between two batches when the table of a build is {@link createCompletion complete}. Returns the version's state from then on. */
  onCaughtUp(progress: BuildProgress): Promise<VersionState | 'over'>;
}

/** The progress of a table that is complete up to its goal. */
export interface BuildProgress {
  readonly checkpoint: GlobalPosition;
  /** The head of the log when the table first came near it. All events up to there are folded. */
  readonly goal: GlobalPosition;
  /** Folds and writes these events, which reach up to a position, within the caller's transaction: the last step of a rebuild. */
  finish(tx: Queryable, events: readonly RecordedEvent[], upTo: GlobalPosition): Promise<void>;
}

/**
 * Folds a projection version's events into its read table. Rows, checkpoint and changes of a batch commit together, under the fence
 * of the owner's epoch. Each event therefore takes effect exactly once, whatever process is killed at whatever time.
 */
export function createProjectionProcessor(options: ProjectionProcessorOptions): MaintainedProcessor {
  return new ProjectionProcessor(options);
}

class ProjectionProcessor implements MaintainedProcessor {
  readonly id: string;
  readonly filter: readonly EventFilter[];
  readonly checkpoint: GlobalPosition;
  readonly #claim: ProcessorClaim;
  readonly #rows: RowWriter;
  readonly #completion: Completion;
  readonly #onCaughtUp: ProjectionProcessorOptions['onCaughtUp'];

  constructor(options: ProjectionProcessorOptions) {
    const { projection, claim } = options;
    this.id = claim.partitions === 1 ? projection.id : `${projection.id}/${claim.partition}`;
    this.filter = projection.filter;
    this.checkpoint = claim.checkpoint;
    this.#claim = claim;
    this.#rows = new RowWriter(options);
    this.#completion = createCompletion(projection, options.log);
    this.#onCaughtUp = (progress) => options.onCaughtUp(progress);
  }

  get failure(): RefoldError | null {
    return this.#rows.failure;
  }

  flush(): Promise<void> {
    return this.#rows.flush();
  }

  async interrupt(): Promise<void> {
    this.#rows.interrupt();
  }

  process(page: EventPage): Promise<'continue' | 'stop'> {
    if (!isTracing || this.#rows.state === 'building' || page.events.length === 0) return this.#process(page);
    return tracedFold({ claim: this.#claim, ...page }, () => this.#process(page));
  }

  async #process(page: EventPage): Promise<'continue' | 'stop'> {
    const { times } = this.#rows;
    times.begin();
    const next = await this.#takeIn(page);
    times.end();
    return next;
  }

  async #takeIn(page: EventPage): Promise<'continue' | 'stop'> {
    const rows = this.#rows;
    const poison = await rows.fold(page);
    if (poison === 'interrupted') return 'stop';
    if (poison) {
      await rows.flush();
      rows.failure ??= poison.error;
      return 'stop';
    }
    const isAtHead = page.upTo >= page.horizon;
    if (isAtHead || rows.isDue) await rows.flush();
    if (rows.failure) return 'stop';
    const goal = rows.state === 'building' ? await this.#completion.goal(page) : undefined;
    if (goal === undefined) return 'continue';
    if (!isAtHead) await rows.flush();
    return rows.failure ? 'stop' : this.#complete(goal);
  }

  async #complete(goal: GlobalPosition): Promise<'continue' | 'stop'> {
    const rows = this.#rows;
    const next = await this.#onCaughtUp({
      checkpoint: rows.checkpoint,
      goal,
      finish: (tx, events, upTo) => rows.finish(tx, events, upTo),
    });
    rows.logLeftOut();
    if (next === 'over') return 'stop';
    rows.state = next;
    return 'continue';
  }
}
