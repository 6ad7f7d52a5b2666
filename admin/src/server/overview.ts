import {
  OverviewChangesDocument,
  type OverviewChangesSubscription,
  type OverviewPartsFragment,
  type ReactorLineFragment,
  type VersionLineFragment,
} from '../gql/graphql.ts';
import { type Connection, keepSubscribed } from './reconnecting.ts';
import { createStore } from './store.ts';

/** All that every page knows of the application, kept up to date by one subscription. */
export interface LiveOverview {
  readonly connection: Connection;
  /** When the last message arrived, in milliseconds. */
  readonly lastMessageAt: number | undefined;
  readonly problem: string | undefined;
  readonly overview: OverviewPartsFragment | undefined;
  readonly versions: ReadonlyMap<string, VersionLineFragment>;
  readonly reactors: ReadonlyMap<string, ReactorLineFragment>;
  /** The last lags of each version, the oldest first. */
  readonly lags: ReadonlyMap<string, readonly LagAt[]>;
}

export interface LagAt {
  readonly at: number;
  readonly lag: number;
}

const nothing: LiveOverview = {
  connection: 'connecting',
  lastMessageAt: undefined,
  problem: undefined,
  overview: undefined,
  versions: new Map(),
  reactors: new Map(),
  lags: new Map(),
};

export const live = createStore<LiveOverview>(nothing);

/** Follows the application until the returned function is called. */
export function followOverview(): () => void {
  const end = keepSubscribed(
    OverviewChangesDocument,
    {},
    {
      onData: ({ overviewChanges }) => live.set(changed(live.get(), overviewChanges)),
      onConnection(connection, error) {
        // The next first message has all versions, so none of before may remain.
        isFirst = true;
        live.set({ ...live.get(), connection, problem: error?.message });
      },
    },
  );
  return () => {
    end();
    live.set(nothing);
  };
}

let isFirst = true;

function changed(before: LiveOverview, change: OverviewChangesSubscription['overviewChanges']): LiveOverview {
  const versions = new Map(isFirst ? [] : before.versions);
  const reactors = new Map(isFirst ? [] : before.reactors);
  isFirst = false;
  for (const version of change.versions) versions.set(version.id, version);
  for (const id of change.removedVersions) versions.delete(id);
  for (const reactor of change.reactors) reactors.set(reactor.name, reactor);
  for (const name of change.removedReactors) reactors.delete(name);
  const at = Date.parse(change.overview.at);
  const lags = new Map(
    [...versions.values()].map(({ id, lag }) => [id, extended(before.lags.get(id), at, Number(lag))]),
  );
  return { ...before, lastMessageAt: Date.now(), overview: change.overview, versions, reactors, lags };
}

// One point each ten seconds for half an hour, as the run log has them.
const intervalMs = 10_000;
const points = 180;

function extended(known: readonly LagAt[] = [], at: number, lag: number): readonly LagAt[] {
  const last = known.at(-1);
  if (last && Math.floor(last.at / intervalMs) === Math.floor(at / intervalMs))
    return [...known.slice(0, -1), { at, lag }];
  return [...known, { at, lag }].slice(-points);
}

/** Puts what the server remembers in front of what this page has seen. */
export function rememberLags(id: string, older: readonly LagAt[]): void {
  const state = live.get();
  const known = state.lags.get(id) ?? [];
  const first = known[0]?.at ?? Number.POSITIVE_INFINITY;
  const lags = new Map(state.lags).set(
    id,
    [...older.filter(({ at }) => at < first - intervalMs / 2), ...known].slice(-points),
  );
  live.set({ ...state, lags });
}
