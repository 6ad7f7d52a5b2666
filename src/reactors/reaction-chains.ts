import { RefoldError } from '../errors.ts';
import type { RecordedEvent } from '../events/event.ts';
import type { EventFilter } from '../projections/projection/projection.ts';
import type { Reactor } from './reactor.ts';
import { versionedReactors } from './versioned-reactor.ts';

/** The reactions that lead to the events of a reaction to this event, for their metadata. */
export function reactionsAfter({ name }: Reactor, event: RecordedEvent): Readonly<Record<string, number>> {
  return { ...event.metadata.reactions, [name]: reactionsBefore(name, event) + 1 };
}

/** The reason not to handle an event: too many reactions of this reactor led to it. */
export function chainProblem({ name, maxChain }: Reactor, event: RecordedEvent): RefoldError | undefined {
  const chain = reactionsBefore(name, event);
  if (chain < maxChain) return undefined;
  const { type, streamId, position, id } = event;
  return new RefoldError(
    'REACTION_LOOP',
    `${chain} reactions of ${name}, each caused by the one before it, have led to '${type}' at position ${position} (stream '${streamId}'). ` +
      "It reacts to itself without end, or its 'maxChain' is too low.",
    { reactor: name, streamId, position: position.toString(), eventId: id, reactions: chain },
  );
}

/** For each reactor whose declared commands may write an event that it handles itself, a warning. */
export function selfFeedingWarnings(reactors: readonly Reactor[]): string[] {
  const warnings = versionedReactors(reactors).flatMap(({ handled, versions }) =>
    // Any version may write an event that another one handles.
    versions.flatMap((version) => selfFeeding(version, handled)),
  );
  return [...new Set(warnings)];
}

function selfFeeding({ name, commands = [], maxChain }: Reactor, handledTypes: readonly EventFilter[]): string[] {
  return commands.flatMap(({ name: command, families, emits }) => {
    const all = new Set(families.flatMap(({ types }) => types));
    const isDeclared = families.length === 1 ? emits !== families[0]?.types : emits.length < all.size;
    if (!isDeclared) return [];
    const own = handledTypes.filter((one) => families.some((family) => family.name === one.family));
    const handled = own.flatMap(({ types }) => types);
    const type = emits.find((emitted) => handled.includes(emitted));
    if (type === undefined) return [];
    return [
      `${name} handles '${type}', which its command '${command}' may write: it can react to itself, up to ${maxChain} times in a chain ('maxChain').`,
    ];
  });
}

/** Metadata may come from anywhere, so the number is checked. */
function reactionsBefore(reactor: string, { metadata }: RecordedEvent): number {
  const before: unknown = metadata.reactions?.[reactor];
  return typeof before === 'number' && before > 0 ? before : 0;
}
