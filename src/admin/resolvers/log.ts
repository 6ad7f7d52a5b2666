import { type EventFilter, readEventPage } from '../../runtime/inspection/events.ts';
import { readRows, touchedRows } from '../../runtime/inspection/rows.ts';
import { stepRow } from '../../runtime/inspection/stepper.ts';
import { readStoredEvents } from '../../store/browsing/search-events.ts';
import { requireRight } from '../access/require-right.ts';
import type { QueryResolvers, TypeResolvers } from '../schema/resolver-types.ts';
import type {
  EventFilter as GivenFilter,
  QueryEventArgs,
  QueryEventsArgs,
  QueryRowHistoryArgs,
  QueryRowsArgs,
} from '../schema/sdl.generated.ts';
import { positionOf, withoutNulls } from './action-inputs.ts';
import { cursor, isBigint, isKeyPlace, pageSize, placeAt } from './cursors.ts';

export function eventFilter(given: GivenFilter | null | undefined): EventFilter {
  const { afterPosition, upToPosition, ...rest } = withoutNulls(given ?? {});
  return {
    ...rest,
    ...(afterPosition ? { afterPosition: positionOf(afterPosition) } : {}),
    ...(upToPosition ? { upToPosition: positionOf(upToPosition) } : {}),
  };
}

export const logQueries = {
  events: async (_, { filter, order, first, after }: QueryEventsArgs, { services }) => {
    const place = placeAt(after, isBigint);
    const { events, next } = await readEventPage(
      services.application,
      eventFilter(filter),
      order ?? 'newestFirst',
      pageSize(first, 50),
      place === null ? null : positionOf(place.toString()),
    );
    return { items: events, next: next === null ? null : cursor(next), searchedTo: next };
  },
  event: async (_, { position }: QueryEventArgs, { services }) => {
    const { db, log } = services.application;
    return (await readStoredEvents(db, log.families, [positionOf(position)]))[0];
  },
  rowHistory: async (_, { projection, key, versions, first, after }: QueryRowHistoryArgs, { services, caller }) => {
    requireRight(caller, 'data');
    const { db, log } = services.application;
    const stepped = await stepRow(services.application, { name: projection, key, numbers: versions ?? undefined });
    const place = placeAt(after, isBigint) ?? -1n;
    const later = stepped.steps.filter(({ position }) => position > place);
    const page = later.slice(0, pageSize(first, 100));
    const positions = page.map(({ position }) => position);
    const events = await readStoredEvents(db, log.families, positions);
    const names = new Set(stepped.versions.flatMap(({ columns }) => Object.keys(columns)));
    const last = page.at(-1);
    return {
      key,
      versions: stepped.versions.map(({ id }) => id),
      columns: [...names].map((name) => {
        const having = stepped.versions.filter(({ columns }) => Object.hasOwn(columns, name));
        return {
          name,
          versions: having.map(({ id }) => id),
          isHidden: having.some(({ hidden }) => hidden.has(name)),
        };
      }),
      items: page.flatMap(({ position, states }) => {
        const event = events.find((one) => one.position === position);
        return event ? [{ event, states }] : [];
      }),
      next: last && page.length < later.length ? cursor(last.position) : null,
    };
  },
  rows: async (_, { version, first, after }: QueryRowsArgs, { services, caller }) => {
    requireRight(caller, 'data');
    const place = placeAt(after, isKeyPlace)?.key;
    const { rows, next } = await readRows(services.application, version, pageSize(first, 20), place);
    return { items: rows, next: next === null || next === undefined ? null : cursor({ key: next }) };
  },
} satisfies Partial<QueryResolvers>;

const textOf = (value: unknown) => (typeof value === 'string' ? value : null);

export const logTypes = {
  LogEvent: {
    payload: ({ payload }, _, { caller }) => {
      requireRight(caller, 'data');
      return payload;
    },
    metadata: ({ metadata }, _, { caller }) => {
      requireRight(caller, 'data');
      return metadata;
    },
    correlationId: ({ metadata }) => textOf(metadata.correlationId),
    causationId: ({ metadata }) => textOf(metadata.causationId),
    rows: ({ position }, _, { caller, services }) => {
      requireRight(caller, 'data');
      return touchedRows(services.application, position);
    },
  },
} satisfies Partial<TypeResolvers>;
