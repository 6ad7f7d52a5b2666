import { setTimeout as pause } from 'node:timers/promises';
import { duration, integer } from '../shared/format.ts';
import { storeAwayText, storeLines } from '../shared/store-texts.ts';
import { textTable } from '../shared/text-table.ts';
import { openRemote } from './remote-api.ts';
import type { RemoteArguments } from './remote-arguments.ts';
import { itemsOf, type RemotePage } from './remote-pages.ts';

interface Count {
  readonly value: number;
  readonly isExact: boolean;
}

interface Version {
  readonly id: string;
  readonly store: string;
  readonly head: string;
  readonly state: string;
  readonly health: string;
  readonly position: string;
  readonly lagEvents: Count;
  readonly lagSeconds: number;
  readonly eventsPerSecond: number;
  readonly etaSeconds: number | null;
  readonly owner: string | null;
  readonly deadLetters: Count;
  readonly heldReason: string | null;
  readonly unchecked: string | null;
  readonly error: { readonly message: string; readonly at: string } | null;
  readonly paused: { readonly by: string; readonly reason: string; readonly since: string } | null;
  readonly canary: { readonly text: string } | null;
  readonly rebuild: { readonly progress: number; readonly heldReason: string | null } | null;
}

interface Overview {
  readonly head: string;
  readonly horizon: string;
  readonly viewsBehind: readonly string[];
  readonly stalls: readonly { readonly text: string }[];
  readonly processes: readonly {
    readonly name: string;
    readonly role: string | null;
    readonly versions: readonly string[];
  }[];
  readonly lostOwners: readonly { readonly name: string; readonly units: number; readonly seconds: number | null }[];
  readonly answers: readonly {
    readonly projection: string;
    readonly version: string | null;
    readonly canary: string | null;
    readonly processes: readonly string[];
  }[];
}

const overviewQuery = `query Overview {
  overview {
    at head horizon stalls { text } viewsBehind stores { name isAway versionCount } processes { name role versions } lostOwners { name units seconds }
    answers { projection version canary processes }
  }
}`;
const versionsQuery = `query Versions($after: String) {
  versions(first: 200, after: $after) {
    items {
      id store head
      state health position lagEvents { value isExact } lagSeconds eventsPerSecond etaSeconds owner
      deadLetters { value isExact } heldReason unchecked error { message at } paused { by reason since } canary { text }
      rebuild { progress heldReason }
    }
    next
    storesAway
  }
}`;

const watchMs = 1000;

/** Prints the state of all versions and processes, as the gateway sees them; with `watch`, again each second. */
export async function remoteStatus(args: RemoteArguments & { readonly watch: boolean | undefined }): Promise<void> {
  const api = openRemote(args.remote);
  for (;;) {
    const { overview } = await api.query<{ overview: Overview }>(overviewQuery);
    const { items: versions, storesAway } = await itemsOf(
      async (after) => (await api.query<{ versions: RemotePage<Version> }>(versionsQuery, { after })).versions,
      Number.POSITIVE_INFINITY,
    );
    if (args.watch && !args.json) console.clear();
    console.log(
      args.json
        ? JSON.stringify({ ...overview, versions, storesAway }, null, 2)
        : toText(overview, versions, storesAway),
    );
    if (!args.watch) return;
    await pause(watchMs);
  }
}

function toText(
  { head, stalls, viewsBehind, lostOwners, answers, processes }: Overview,
  versions: readonly Version[],
  storesAway: readonly string[],
): string {
  return [
    ...versions.flatMap(({ unchecked }) => unchecked ?? []),
    ...storesAway.map(storeAwayText),
    versions.length === 0 ? 'No projection version is registered yet.' : versionsTable(versions),
    `The log ends at position ${integer(BigInt(head))}.`,
    ...versions.flatMap(notesOf),
    ...stalls.map(({ text }) => text),
    ...viewsBehind,
    ...lostOwners.map(
      ({ name, units, seconds }) =>
        `${name} owns ${integer(units)} of these and sent its last heartbeat ${seconds === null ? 'long' : duration(seconds)} ago.`,
    ),
    '',
    textTable(
      ['read model', 'answered by', 'in'],
      answers.map(({ projection, version, canary, processes: names }) => [
        projection,
        `${version ?? 'nothing'}${canary === null ? '' : `, ${canary} for some clients`}`,
        names.join(', ') || '-',
      ]),
    ),
    '',
    textTable(
      ['process', 'role', 'declares'],
      processes.map(({ name, role, versions: declared }) => [name, role ?? '-', declared.join(', ') || '-']),
    ),
  ].join('\n');
}

function versionsTable(versions: readonly Version[]): string {
  return textTable(
    ['version', 'state', 'health', 'position', 'lag', 'behind', 'events/s', 'ETA', 'owner'],
    versions.map((version) => [
      version.id,
      version.state.toLowerCase(),
      version.health.toLowerCase(),
      integer(BigInt(version.position)),
      countText(version.lagEvents),
      version.lagSeconds === 0 ? '-' : duration(version.lagSeconds),
      integer(version.eventsPerSecond),
      version.etaSeconds === null ? '-' : duration(version.etaSeconds),
      version.owner ?? '-',
    ]),
  );
}

function notesOf(version: Version): string[] {
  const { id, error, paused, heldReason, canary, rebuild, deadLetters } = version;
  return [
    ...storeLines(version),
    ...(paused ? [`${id} is paused since ${paused.since} by ${paused.by} (${paused.reason})`] : []),
    ...(heldReason ? [`${id} is held: ${heldReason}`] : []),
    ...(canary ? [`${id} is a canary: it answers ${canary.text}`] : []),
    ...(deadLetters.value > 0 ? [`${id} has ${countText(deadLetters)} dead letters`] : []),
    ...(rebuild
      ? [
          `${id} is being rebuilt: ${Math.floor(rebuild.progress * 100)} %${rebuild.heldReason ? `; does not take over: ${rebuild.heldReason}` : ''}`,
        ]
      : []),
    ...(error ? [`${id} stopped at ${error.at}: ${error.message}`] : []),
  ];
}

function countText({ value, isExact }: Count): string {
  return `${integer(value)}${isExact ? '' : '+'}`;
}
