import type { ReactorStatus } from '../../runtime/reactors/reactor-steps.ts';
import { integer } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';

/** Formats the reactors as a table, followed by notes for the operator. */
export function reactorsToText(reactors: readonly ReactorStatus[]): string {
  const table = textTable(
    ['reactor', 'state', 'position', 'lag', 'handled', 'left out', 'owner'],
    reactors.map((reactor) => [
      reactor.name,
      reactor.state,
      integer(reactor.position),
      integer(reactor.lag),
      integer(reactor.handled),
      integer(reactor.skipped),
      reactor.owner ?? '-',
    ]),
  );
  const notes = reactors.flatMap(({ name, deadLetters, error }) => [
    ...(deadLetters > 0
      ? [`${name} has ${integer(deadLetters)} dead letters: 'refold dead-letters list ${name}'`]
      : []),
    ...(error ? [`${name} stopped at ${error.at}: ${error.message}`] : []),
  ]);
  return [table, ...notes].join('\n');
}
