import { beginning, type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { type EventAttempts, writeReactorAttempts } from '../../store/reactors/reactor-attempts.ts';

export interface AttemptLogOptions {
  readonly db: Database;
  readonly claim: ProcessorClaim;
  /** Identifies this process. Its own unfinished attempts are not lost. */
  readonly processId: string;
}

/**
 * Counts the attempts of a reactor's events. An attempt is stored before its handler runs, so the count outlives the process. Attempts that begin
 * at the same time share a statement.
 */
export class AttemptLog {
  readonly #options: AttemptLogOptions;
  readonly #events: Map<GlobalPosition, EventAttempts>;
  #begun = beginning;
  /** The write that is under way, and the one after it, which covers everything changed until it begins. */
  #writing: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(options: AttemptLogOptions, found: readonly EventAttempts[]) {
    this.#options = options;
    this.#events = new Map(found.map((event) => [event.position, event]));
  }

  of(position: GlobalPosition): EventAttempts {
    return this.#events.get(position) ?? { position, failed: 0, lost: 0, running: false };
  }

  /** Stores that an attempt begins, and returns its number: 1, 2, 3… @throws RefoldError `PROCESSOR_FENCED` */
  async begin(position: GlobalPosition): Promise<number> {
    const { failed, lost } = this.#change(position, { running: true });
    this.#begun = laterPosition(this.#begun, position);
    await this.#write();
    return failed + lost + 1;
  }

  /** The attempt has failed. Stored soon, or with the next write if that is not possible. Returns the number of failed attempts. */
  failed(position: GlobalPosition): number {
    const { failed } = this.#change(position, { failed: this.of(position).failed + 1, running: false });
    void this.flush();
    return failed;
  }

  /** The attempt does not count: it was given up. Stored with the next write. */
  givenUp(position: GlobalPosition): void {
    this.#change(position, { running: false });
  }

  /** The event is done, or starts again with its first attempt. Stored with the next write. */
  forget(position: GlobalPosition): void {
    this.#events.delete(position);
  }

  /** Stores what is not stored yet, if the database can be reached. Otherwise the next owner counts attempts that were given up as lost. */
  async flush(): Promise<void> {
    await this.#write().catch(() => {});
  }

  #change(position: GlobalPosition, change: Partial<EventAttempts>): EventAttempts {
    const event = { ...this.of(position), ...change };
    this.#events.set(position, event);
    return event;
  }

  #write(): Promise<void> {
    this.#next ??= this.#writing
      .catch(() => {}) // reported to those who waited for it
      .then(() => {
        this.#writing = this.#next ?? this.#writing;
        this.#next = undefined;
        const { db, claim, processId } = this.#options;
        return writeReactorAttempts(db, claim, processId, this.#events.values(), this.#begun);
      });
    return this.#next;
  }
}
