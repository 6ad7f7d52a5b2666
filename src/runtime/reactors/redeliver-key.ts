import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { BegunReactor } from '../../reactors/begun-reactor.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import {
  deleteReactorLetter,
  keepReactorLetter,
  type ReadLetter,
  readLettersOfKey,
} from '../../store/reactors/reactor-letters.ts';
import { letterError } from '../dead-letters/dead-letters.ts';
import { type AttemptOptions, attempt } from './attempt.ts';
import { reactionFailure } from './reaction.ts';
import { awaitedBy } from './reactor-task.ts';
import type { WaitingEvents } from './waiting-events.ts';

export interface RedeliveryOptions extends Omit<AttemptOptions, 'reactor'> {
  readonly reactor: BegunReactor;
  readonly claim: ProcessorClaim;
  readonly waiting: WaitingEvents;
}

interface RedeliveredKey {
  /** The position of the first dead letter that is left. */
  readonly first: GlobalPosition | undefined;
  /** Milliseconds until its next attempt, if the rules allow one. */
  readonly pause?: number;
}

/** The keys of a reactor that have dead letters, and the requests to handle those again. */
export class BlockedKeys {
  /** The position of the first dead letter of each key. */
  readonly #first: Map<string, GlobalPosition>;
  readonly #requested = new Set<string>();
  /** The keys whose first dead letter waits for its next attempt. */
  readonly #paused = new Set<string>();

  constructor(first: Map<string, GlobalPosition>) {
    this.#first = first;
  }

  /** Whether an event waits behind a dead letter of its key. */
  isBlocked(key: string): boolean {
    return this.#first.has(key);
  }

  /** Whether the event is at or behind the first dead letter of its key. Those before it were handled before a crash. */
  isBehind(key: string, position: GlobalPosition): boolean {
    const first = this.#first.get(key);
    return first !== undefined && position >= first;
  }

  block(key: string, position: GlobalPosition): void {
    if (!this.isBehind(key, position)) this.#first.set(key, position);
  }

  request(keys: readonly string[]): void {
    for (const key of keys) if (!this.#paused.has(key)) this.#requested.add(key);
  }

  /** The keys whose dead letters are to be handled again. */
  get requested(): ReadonlySet<string> {
    return this.#requested;
  }

  /** Handles the dead letters of a requested key. Returns how to go on after a pause, if one is due. */
  async redeliver(
    options: RedeliveryOptions,
    key: string,
  ): Promise<{ readonly pause: number; readonly resume: () => void } | undefined> {
    const { first, pause } = await redeliverKey(options, key);
    if (first === undefined) this.#first.delete(key);
    else this.#first.set(key, first);
    if (pause === undefined) return undefined;
    this.#paused.add(key);
    const resume = () => {
      this.#paused.delete(key);
      this.#requested.add(key);
    };
    return { pause, resume };
  }

  /** A request is carried out now. */
  take(key: string): void {
    this.#requested.delete(key);
  }
}

/**
 * Handles the dead letters of a key in their order, until one fails. Dead letters that failed before are discarded if that was requested.
 */
async function redeliverKey(options: RedeliveryOptions, key: string): Promise<RedeliveredKey> {
  const { reactor, db, log, claim, waiting } = options;
  const letters = await readLettersOfKey(db, reactor.name, key);
  if (letters.every(({ requested }) => requested === null)) return { first: letters[0]?.position };
  for (const letter of letters) {
    const { position } = letter;
    const event = await log.readAt(position); // one at a time: events may be large, and the first may fail again
    const done = await redeliver(options, letter, event, letters);
    if (done.kind === 'left') return { first: position };
    if (done.kind === 'retry') return { first: position, pause: done.pause };
    await deleteReactorLetter(db, claim, position, done.kind);
    if (done.kind !== 'waiting') waiting.leave(position);
    else await waiting.wakeIfDecided(position);
  }
  return { first: undefined };
}

type Redelivered = { readonly kind: 'handled' | 'skipped' | 'discarded' | 'waiting' | 'left' } | Retry;
type Retry = { readonly kind: 'retry'; readonly pause: number };

async function redeliver(
  options: RedeliveryOptions,
  letter: ReadLetter,
  event: RecordedEvent | undefined,
  read: readonly ReadLetter[],
): Promise<Redelivered> {
  const { reactor, db, claim, attempts, waiting } = options;
  if (!event || (letter.error && letter.requested === 'discard')) {
    attempts.forget(letter.position);
    return { kind: 'discarded' };
  }
  await waiting.read([event]); // its key may not have been computable before
  const { keyError } = awaitedBy(reactor, event);
  const version = reactor.at(letter.position);
  const outcome = version
    ? await attempt({ ...options, reactor: version }, { event, keyError }, letter.attempts)
    : { kind: 'unreadable' as const, error: reactor.unknownAt(letter.position), attempts: letter.attempts };
  switch (outcome.kind) {
    case 'handled':
      return { kind: outcome.result === 'skip' ? 'skipped' : 'handled' };
    case 'suspended':
      waiting.rests(letter.position);
      return { kind: 'waiting' };
    case 'given-up':
      return { kind: 'left' };
    case 'retry':
      return outcome;
    case 'unreadable':
    case 'failed': {
      const error = letterError(reactionFailure(reactor, event, outcome.error, outcome.attempts));
      await keepReactorLetter(db, claim, { ...letter, error, attempts: outcome.attempts }, read);
      attempts.forget(letter.position);
      await attempts.flush();
      return { kind: 'left' };
    }
  }
}
