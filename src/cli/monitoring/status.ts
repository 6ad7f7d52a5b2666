import { setTimeout as pause } from 'node:timers/promises';
import { defineCommand } from 'citty';
import { itemsOf, type OperatorApi } from '../api/operator-api.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { type Reactor, reactorFields, reactorsToText } from '../reactors/reactor-text.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { duration, integer, json } from '../shared/format.ts';
import { storeAwayText } from '../shared/store-texts.ts';
import { jsonArgument } from '../shared/version-argument.ts';
import { type Answer, answersToText, type Process, processesToText } from './status-processes.ts';
import { type Version, versionFields, versionsToText } from './status-versions.ts';

export const status = defineCommand({
  meta: {
    name: 'status',
    description:
      'Show every projection version (state, health, position, lag in events and in time, rate, ETA), every reactor, the version that answers for each read model, and every live process.',
  },
  args: {
    ...jsonArgument,
    watch: { type: 'boolean', description: 'Refresh until Ctrl-C', alias: 'w' },
    ...apiArguments,
  },
  run: withErrorReporting(({ args }) =>
    withApi(args, async (api) => {
      for (;;) {
        const report = await readReport(api);
        if (args.watch && !args.json) console.clear();
        console.log(args.json ? json(flat(report)) : toText(report));
        if (!args.watch) return;
        await pause(watchMs);
      }
    }),
  ),
});

const watchMs = 1000;

// The first one decides how far the log can be read. A pool of writers may hold hundreds of positions.
const shownHolders = 3;

interface Overview {
  readonly head: string;
  readonly notRegistered: readonly string[];
  readonly viewsBehind: readonly string[];
  readonly stalls: readonly { readonly text: string; readonly seconds: number }[];
  readonly processes: readonly Process[];
  readonly lostOwners: readonly { readonly name: string; readonly units: number; readonly seconds: number | null }[];
  readonly answers: readonly Answer[];
  readonly stores: readonly { readonly name: string; readonly isAway: boolean }[];
}

interface Report {
  readonly overview: Overview;
  readonly versions: readonly Version[];
  readonly reactors: readonly Reactor[];
}

const overviewQuery = `query Overview {
  overview {
    at head horizon notRegistered stalls { text seconds } viewsBehind stores { name isAway versionCount }
    processes { name role versions } lostOwners { name units seconds } answers { projection version canary processes }
  }
  reactors { ${reactorFields} }
}`;
const versionsQuery = `query Versions($after: String) {
  versions(first: 200, after: $after) { items { ${versionFields} } next }
}`;

async function readReport(api: OperatorApi): Promise<Report> {
  const found = await api.query<{ overview: Overview; reactors: readonly Reactor[] }>(overviewQuery);
  const { items: versions } = await itemsOf<Version>(api, versionsQuery);
  // Always in the same order, for readers that compare. The API returns those that need attention first.
  return { ...found, versions: versions.toSorted((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true })) };
}

function flat({ overview, ...rest }: Report): object {
  return { ...overview, ...rest, storesAway: overview.stores.filter(({ isAway }) => isAway).map(({ name }) => name) };
}

function toText({ overview, versions, reactors }: Report): string {
  const { notRegistered, stores, lostOwners } = overview;
  const away = stores.flatMap(({ name, isAway }) => (isAway ? [storeAwayText(name)] : []));
  const none = versions.length === 0 && notRegistered.length === 0;
  // If the horizon stands still while the log grows, these hold it.
  const stalls = overview.stalls.filter(({ seconds }) => seconds > 1);
  const more = stalls.length - shownHolders;
  return [
    ...versions.flatMap(({ unchecked }) => unchecked ?? []),
    ...away,
    none ? 'No projection version is registered yet.' : versionsToText(versions, notRegistered),
    ...(reactors.length === 0 ? [] : ['', reactorsToText(reactors)]),
    ...stalls.slice(0, shownHolders).map(({ text }) => text),
    ...(more > 0 ? [`${integer(more)} more sessions hold positions above that; --json shows them.`] : []),
    ...overview.viewsBehind,
    ...lostOwners.map(
      ({ name, units, seconds }) =>
        `${name} owns ${integer(units)} of these and sent its last heartbeat ${seconds === null ? 'long' : duration(seconds)} ago: it was killed, or hangs. Another running process takes over; if there is none, start one.`,
    ),
    ...answersToText(overview.answers),
    ...processesToText(overview.processes),
  ].join('\n');
}
