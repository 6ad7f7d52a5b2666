import { RefoldError } from '../../errors.ts';
import { integer } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';
import { openRemote } from './remote-api.ts';
import type { RemoteArguments } from './remote-arguments.ts';

interface Count {
  readonly value: number;
}

interface RemoteReactor {
  readonly name: string;
  readonly state: string;
  readonly owner: string | null;
  readonly position: string;
  readonly lag: string;
  readonly handled: string;
  readonly skipped: string;
  readonly deadLetters: Count;
  readonly waiting: Count;
  readonly error: { readonly message: string; readonly at: string } | null;
  readonly waitingEvents?: readonly {
    readonly position: string;
    readonly eventType: string;
    readonly streamId: string;
    readonly step: string;
    readonly awaits: readonly string[];
    readonly awaitedKey: string | null;
    readonly due: string | null;
    readonly isWoken: boolean;
  }[];
}

const fields = `name state owner position lag handled skipped deadLetters { value } waiting { value }
  error { message at }`;

/** Prints all reactors. */
export async function remoteReactors(args: RemoteArguments): Promise<void> {
  const { reactors } = await openRemote(args.remote).query<{ reactors: RemoteReactor[] }>(`{ reactors { ${fields} } }`);
  if (args.json) return console.log(JSON.stringify(reactors, null, 2));
  console.log(reactors.length === 0 ? 'No reactor is registered yet.' : toText(reactors));
}

/** Prints a reactor, and the events whose handlers wait. */
export async function remoteReactor(args: RemoteArguments, name: string): Promise<void> {
  const { reactor } = await openRemote(args.remote).query<{ reactor: RemoteReactor | null }>(
    `query Reactor($name: ID!) {
      reactor(name: $name) {
        ${fields} waitingEvents { position eventType streamId step awaits awaitedKey due isWoken }
      }
    }`,
    { name },
  );
  if (!reactor) throw new RefoldError('INVALID_CONFIG', `There is no reactor '${name}'.`);
  if (args.json) return console.log(JSON.stringify(reactor, null, 2));
  const waiting = (reactor.waitingEvents ?? []).map((event) => [
    integer(BigInt(event.position)),
    event.eventType,
    event.streamId,
    event.step,
    event.isWoken
      ? '(is over)'
      : event.awaits.length === 0
        ? 'its time'
        : `${event.awaits.join(' or ')} of ${event.awaitedKey ?? '(hidden)'}`,
    event.due ?? 'the event',
  ]);
  const events =
    waiting.length === 0
      ? 'No handler waits.'
      : textTable(['position', 'event', 'stream', 'step', 'waits for', 'until'], waiting);
  console.log([toText([reactor]), '', events].join('\n'));
}

function toText(reactors: readonly RemoteReactor[]): string {
  const table = textTable(
    ['reactor', 'state', 'position', 'lag', 'handled', 'left out', 'waiting', 'dead letters', 'owner'],
    reactors.map((one) => [
      one.name,
      one.state,
      integer(BigInt(one.position)),
      integer(BigInt(one.lag)),
      integer(BigInt(one.handled)),
      integer(BigInt(one.skipped)),
      integer(one.waiting.value),
      integer(one.deadLetters.value),
      one.owner ?? '-',
    ]),
  );
  const stopped = reactors.flatMap(({ name, error }) =>
    error ? [`${name} stopped at ${error.at}: ${error.message}`] : [],
  );
  return [table, ...stopped].join('\n');
}
