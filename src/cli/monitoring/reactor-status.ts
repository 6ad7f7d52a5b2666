import type { ReactorStatus } from '../../runtime/reactors/reactor-operations.ts';
import type { ReactorVersionStatus } from '../../runtime/reactors/reactor-versions.ts';
import type { WaitingEvent } from '../../store/reactors/reactor-instances.ts';
import { integer } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';

/** Formats the reactors as a table, followed by notes for the operator. */
export function reactorsToText(reactors: readonly ReactorStatus[]): string {
  const table = textTable(
    ['reactor', 'state', 'position', 'lag', 'handled', 'left out', 'waiting', 'owner'],
    reactors.map((reactor) => [
      reactor.name,
      reactor.state,
      integer(reactor.position),
      integer(reactor.lag),
      integer(reactor.handled),
      integer(reactor.skipped),
      integer(reactor.waiting),
      reactor.owner ?? '-',
    ]),
  );
  const notes = reactors.flatMap(({ name, deadLetters, versions, waiting, nextDue, error }) => [
    ...(versions.length > 1 ? versions.map((version) => versionText(name, version)) : []),
    ...(waiting > 0
      ? [
          `${name}: the next wait is over ${nextDue ? `at ${nextDue}` : 'with its event'}: 'refold reactor show ${name}'`,
        ]
      : []),
    ...(deadLetters > 0
      ? [`${name} has ${integer(deadLetters)} dead letters: 'refold dead-letters list ${name}'`]
      : []),
    ...(error ? [`${name} stopped at ${error.at}: ${error.message}`] : []),
  ]);
  return [table, ...notes].join('\n');
}

function versionText(name: string, { version, after, upTo, underWay, isNeeded }: ReactorVersionStatus): string {
  const events = `the events ${upTo === null ? `after position ${integer(after)}` : `up to position ${integer(upTo)}`}`;
  const left = isNeeded ? `${integer(underWay)} under way` : 'none under way, so its declaration is not needed';
  return `${name}@${version} handles ${events}: ${left}`;
}

/** Formats the events whose handlers wait. */
export function waitingToText(waiting: readonly WaitingEvent[], total: number): string {
  if (waiting.length === 0) return 'No handler waits.';
  const table = textTable(
    ['position', 'event', 'stream', 'step', 'waits for', 'until', 'since'],
    waiting.map(({ position, type, streamId, step, awaits, awaitedKey, due, since, isWoken }) => [
      integer(position),
      type,
      streamId,
      step,
      isWoken ? '(is over)' : awaits.length === 0 ? 'its time' : `${awaits.join(' or ')} of ${awaitedKey}`,
      due ?? 'the event',
      since,
    ]),
  );
  const more = total - waiting.length;
  return more > 0 ? `${table}\nand ${integer(more)} more` : table;
}
