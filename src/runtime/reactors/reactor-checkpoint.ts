import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { advanceReactor } from '../../store/reactors/reactors.ts';
import type { ReactorTask } from './reactor-task.ts';

export interface ReactorCheckpointOptions {
  readonly db: Database;
  readonly claim: ProcessorClaim;
  /** Receives the error of a write. The checkpoint is then where it was. */
  onError(error: unknown): void;
}

/** The events above a reactor's checkpoint, in the order of the log, and the checkpoint that follows them. */
export class ReactorCheckpoint {
  readonly #options: ReactorCheckpointOptions;
  readonly #tasks: ReactorTask[] = [];
  #position: GlobalPosition;
  /** Everything up to here is done, except the tasks. */
  #reached: GlobalPosition;
  /** What the next write adds to the reactor's totals. */
  #handled = 0;
  #skipped = 0;
  #unwritten = false;
  #writing: Promise<void> | undefined;

  constructor(options: ReactorCheckpointOptions) {
    this.#options = options;
    this.#position = options.claim.checkpoint;
    this.#reached = options.claim.checkpoint;
  }

  /** Whether the log has yet to deliver the event, or its task is not done. */
  isPending(position: GlobalPosition): boolean {
    return (
      position > this.#reached ||
      this.#tasks.some(({ state, event }) => state !== 'done' && event.position === position)
    );
  }

  /** In the order of the log. */
  get tasks(): readonly ReactorTask[] {
    return this.#tasks;
  }

  accept(task: ReactorTask): void {
    this.#tasks.push(task);
    this.#reached = task.event.position;
  }

  /** All events up to the position are accepted. */
  reach(position: GlobalPosition): void {
    this.#reached = position;
  }

  count(outcome: 'handled' | 'skipped'): void {
    if (outcome === 'handled') this.#handled++;
    else this.#skipped++;
  }

  /** Moves the checkpoint up to the first event that is not done. One statement runs at a time and covers everything done meanwhile. */
  settle(): void {
    while (this.#tasks[0]?.state === 'done') this.#tasks.shift();
    this.#unwritten = true;
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when no write is under way. */
  async written(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#unwritten) {
        this.#unwritten = false;
        await this.#write();
      }
    } catch (error) {
      this.#options.onError(error);
    } finally {
      this.#writing = undefined;
    }
  }

  async #write(): Promise<void> {
    const { db, claim } = this.#options;
    const first = this.#tasks.find(({ state }) => state !== 'done');
    const to = first ? globalPosition(first.event.position - 1n) : this.#reached;
    if (to <= this.#position) return;
    const counts = { handled: this.#handled, skipped: this.#skipped };
    this.#handled = 0;
    this.#skipped = 0;
    await advanceReactor(db, claim, { from: this.#position, to, ...counts });
    this.#position = to;
  }
}
