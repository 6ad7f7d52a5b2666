import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { EventFilter } from '../../projections/projection/projection.ts';
import type { EventPage, Processor } from './event-source.ts';

/** Event types, by family. */
export type WantedTypes = ReadonlyMap<string, ReadonlySet<string>>;

type Filtered = Pick<Processor, 'filter'>;

export function wantedTypes(processors: readonly Filtered[]): WantedTypes {
  const types = new Map<string, Set<string>>();
  for (const { family, types: names } of processors.flatMap(({ filter }) => filter)) {
    const known = types.get(family) ?? new Set<string>();
    for (const name of names) known.add(name);
    types.set(family, known);
  }
  return types;
}

/** Returns the filter of a reading that serves all of these processors. */
export function filterOf(processors: readonly Filtered[]): EventFilter[] {
  return [...wantedTypes(processors)].map(([family, names]) => ({ family, types: [...names].sort() }));
}

/** Returns the events of a page past a position. `wanted` is set if the page was also read for other processors. */
export function eventsFor(
  { events }: EventPage,
  after: GlobalPosition,
  wanted: WantedTypes | undefined,
): readonly RecordedEvent[] {
  const [first] = events;
  if (!wanted && (first === undefined || first.position > after)) return events;
  return events.filter(
    ({ position, family, type }) => position > after && (!wanted || (wanted.get(family)?.has(type) ?? false)),
  );
}
