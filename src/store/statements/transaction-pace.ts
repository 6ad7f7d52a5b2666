import { EventPace, type OnSlowEvent } from '../../events/event-pace.ts';
import type { Queryable } from './statement.ts';

// Servers end a transaction whose client sends nothing for some seconds.
const aliveMs = 1000;

/** An {@link EventPace} of work within a transaction: at its turns, the server also learns that this process goes on. */
export class TransactionPace extends EventPace {
  readonly #tx: Queryable;
  readonly #isGivenUp: () => boolean;
  #sentAt = performance.now();

  /** @param isGivenUp whether nothing of the transaction is wanted any more */
  constructor(tx: Queryable, onSlow?: OnSlowEvent, isGivenUp = () => false) {
    super(onSlow);
    this.#tx = tx;
    this.#isGivenUp = isGivenUp;
    this.start();
  }

  override async turn(): Promise<void> {
    await super.turn();
    if (performance.now() - this.#sentAt < aliveMs || this.#isGivenUp()) return;
    await this.#tx.query({ text: 'select' });
    this.#sentAt = performance.now();
    this.start();
  }
}
