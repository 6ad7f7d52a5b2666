import { integer } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';

interface Count {
  readonly value: number;
  readonly isExact: boolean;
}

export interface Reactor {
  readonly name: string;
  readonly state: string;
  readonly owner: string | null;
  readonly position: string;
  readonly lag: string;
  readonly handled: string;
  readonly skipped: string;
  readonly deadLetters: Count;
  readonly waiting: Count;
  readonly nextDue: string | null;
  readonly versions: readonly {
    readonly number: number;
    readonly after: string;
    readonly upTo: string | null;
    readonly underWay: Count;
    readonly isNeeded: boolean;
  }[];
  readonly error: { readonly message: string; readonly at: string } | null;
}

export const reactorFields = `name state owner position lag handled skipped deadLetters { value isExact } waiting { value isExact }
  nextDue versions { number after upTo underWay { value isExact } isNeeded } error { message at }`;

export interface WaitingEvent {
  readonly position: string;
  readonly eventType: string;
  readonly streamId: string;
  readonly step: string;
  readonly awaits: readonly string[];
  readonly awaitedKey: string | null;
  readonly due: string | null;
  readonly since: string;
  readonly isWoken: boolean;
}

export const waitingFields = 'position eventType streamId step awaits awaitedKey due since isWoken';

/** `1000+` if there are more. */
export function countText({ value, isExact }: Count): string {
  return `${integer(value)}${isExact ? '' : '+'}`;
}

/** Formats the reactors as a table, followed by notes for the operator. */
export function reactorsToText(reactors: readonly Reactor[]): string {
  const table = textTable(
    ['reactor', 'state', 'position', 'lag', 'handled', 'left out', 'waiting', 'owner'],
    reactors.map((reactor) => [
      reactor.name,
      reactor.state,
      integer(BigInt(reactor.position)),
      integer(BigInt(reactor.lag)),
      integer(BigInt(reactor.handled)),
      integer(BigInt(reactor.skipped)),
      countText(reactor.waiting),
      reactor.owner ?? '-',
    ]),
  );
  const notes = reactors.flatMap(({ name, deadLetters, versions, waiting, nextDue, error }) => [
    ...(versions.length > 1 ? versions.map((version) => versionText(name, version)) : []),
    ...(waiting.value > 0
      ? [
          `${name}: the next wait is over ${nextDue ? `at ${nextDue}` : 'with its event'}: 'refold reactor show ${name}'`,
        ]
      : []),
    ...(deadLetters.value > 0
      ? [`${name} has ${countText(deadLetters)} dead letters: 'refold dead-letters list ${name}'`]
      : []),
    ...(error ? [`${name} stopped at ${error.at}: ${error.message}`] : []),
  ]);
  return [table, ...notes].join('\n');
}

function versionText(name: string, { number, after, upTo, underWay, isNeeded }: Reactor['versions'][number]): string {
  const events = `the events ${upTo === null ? `after position ${integer(BigInt(after))}` : `up to position ${integer(BigInt(upTo))}`}`;
  const left = isNeeded ? `${countText(underWay)} under way` : 'none under way, so its declaration is not needed';
  return `${name}@${number} handles ${events}: ${left}`;
}

/** Formats the events whose handlers wait. */
export function waitingToText(waiting: readonly WaitingEvent[], total: number): string {
  if (waiting.length === 0) return 'No handler waits.';
  const table = textTable(
    ['position', 'event', 'stream', 'step', 'waits for', 'until', 'since'],
    waiting.map(({ position, eventType, streamId, step, awaits, awaitedKey, due, since, isWoken }) => [
      integer(BigInt(position)),
      eventType,
      streamId,
      step,
      isWoken
        ? '(is over)'
        : awaits.length === 0
          ? 'its time'
          : `${awaits.join(' or ')} of ${awaitedKey ?? '(hidden)'}`,
      due ?? 'the event',
      since,
    ]),
  );
  const more = total - waiting.length;
  return more > 0 ? `${table}\nand ${integer(more)} more` : table;
}
