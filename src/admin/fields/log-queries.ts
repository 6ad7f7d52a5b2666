import { type EventFilter as Filter, readEventPage } from '../../runtime/inspection/events.ts';
import { readRows } from '../../runtime/inspection/rows.ts';
import { stepRow } from '../../runtime/inspection/stepper.ts';
import { readStoredEvents } from '../../store/browsing/search-events.ts';
import { requireRight } from '../access/require-right.ts';
import { positionOf, withoutNulls } from '../types/action-inputs.ts';
import { builder } from '../types/builder.ts';
import { cursor, isBigint, isKeyPlace, pageSize, placeAt } from '../types/cursors.ts';
import { EventPage, LogEvent, RowHistory, RowPage } from '../types/log-types.ts';
import { EventOrder } from '../types/shared-types.ts';

export const EventFilter = builder.inputType('EventFilter', {
  fields: (t) => ({
    family: t.string({ description: 'The family of `streamId`.' }),
    streamId: t.string(),
    types: t.stringList({ description: '`Opened`, `account.Opened` or `account.*`.' }),
    afterPosition: t.field({ type: 'BigInt', description: 'Only events after this position.' }),
    upToPosition: t.field({ type: 'BigInt', description: 'Only events up to this position.' }),
    since: t.field({ type: 'DateTime', description: 'Recorded at this time or later.' }),
    until: t.field({ type: 'DateTime', description: 'Recorded before this time.' }),
    correlationId: t.string(),
  }),
});

export function eventFilter(given: typeof EventFilter.$inferInput | null | undefined): Filter {
  const { afterPosition, upToPosition, ...rest } = withoutNulls(given ?? {}) as typeof EventFilter.$inferInput;
  return {
    ...(rest as Filter), // without nulls
    ...(afterPosition ? { afterPosition: positionOf(afterPosition) } : {}),
    ...(upToPosition ? { upToPosition: positionOf(upToPosition) } : {}),
  };
}

builder.queryFields((t) => ({
  events: t.field({
    type: EventPage,
    description: 'Events of the log.',
    args: {
      filter: t.arg({ type: EventFilter }),
      order: t.arg({ type: EventOrder, defaultValue: 'newest-first' }),
      first: t.arg.int({ defaultValue: 50 }),
      after: t.arg.string(),
    },
    resolve: async (_, { filter, order, first, after }, { services }) => {
      const place = placeAt(after, isBigint);
      const { events, next } = await readEventPage(
        services.application,
        eventFilter(filter),
        order ?? 'newest-first',
        pageSize(first, 50),
        place === null ? null : positionOf(place.toString()),
      );
      return { items: [...events], next: next === null ? null : cursor(next), searchedTo: next };
    },
  }),
  event: t.field({
    type: LogEvent,
    nullable: true,
    description: 'One event. Null if the log has none at this position.',
    args: { position: t.arg({ type: 'BigInt', required: true }) },
    resolve: async (_, { position }, { services }) => {
      const { db, log } = services.application;
      return (await readStoredEvents(db, log.families, [positionOf(position)]))[0] ?? null;
    },
  }),
  rowHistory: t.field({
    type: RowHistory,
    description:
      "What happened to a row: each of its events with the row before and after, as the declared code of each version folds them now. Nothing is written. `key` is the row's key as JSON: one value, or a list of values in the order of the key's columns. Needs the right `data`.",
    args: {
      projection: t.arg.string({ required: true }),
      key: t.arg({ type: 'JSON', required: true }),
      versions: t.arg.intList(),
      first: t.arg.int({ defaultValue: 100 }),
      after: t.arg.string(),
    },
    resolve: async (_, { projection, key, versions, first, after }, { services, caller }) => {
      requireRight(caller, 'data');
      const { db, log } = services.application;
      const stepped = await stepRow(services.application, { name: projection, key, numbers: versions ?? undefined });
      const place = placeAt(after, isBigint) ?? -1n;
      const later = stepped.steps.filter(({ position }) => position > place);
      const page = later.slice(0, pageSize(first, 100));
      const events = await readStoredEvents(
        db,
        log.families,
        page.map(({ position }) => position),
      );
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
  }),
  rows: t.field({
    type: RowPage,
    description: 'Rows of a version by key, to find one for `rowHistory`. Needs the right `data`.',
    args: { version: t.arg.id({ required: true }), first: t.arg.int({ defaultValue: 20 }), after: t.arg.string() },
    resolve: async (_, { version, first, after }, { services, caller }) => {
      requireRight(caller, 'data');
      const place = placeAt(after, isKeyPlace)?.key;
      const { rows, next } = await readRows(services.application, version, pageSize(first, 20), place);
      return { items: [...rows], next: next === null || next === undefined ? null : cursor({ key: next }) };
    },
  }),
}));
