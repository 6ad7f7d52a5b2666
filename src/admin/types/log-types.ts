import { type TouchedRow as Touched, touchedRows } from '../../runtime/inspection/rows.ts';
import type { RowState as State } from '../../runtime/inspection/stepper.ts';
import type { StoredEvent } from '../../store/browsing/search-events.ts';
import { requireRight } from '../access/require-right.ts';
import { builder } from './builder.ts';
import { StepOutcome } from './shared-types.ts';

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

export const TouchedRow = builder.objectRef<Touched>('TouchedRow');
TouchedRow.implement({
  fields: (t) => ({
    version: t.expose('version', { type: 'ID' }),
    projection: t.expose('projection', { type: 'String' }),
    key: t.expose('key', { type: 'JSON' }),
    hasHistory: t.expose('hasHistory', { type: 'Boolean', description: 'Whether `rowHistory` can show the row.' }),
  }),
});

export const LogEvent = builder.objectRef<StoredEvent>('LogEvent');
LogEvent.implement({
  fields: (t) => ({
    position: t.expose('position', { type: 'BigInt' }),
    id: t.expose('id', { type: 'ID' }),
    family: t.expose('family', { type: 'String' }),
    streamId: t.expose('streamId', { type: 'String' }),
    streamPosition: t.field({ type: 'BigInt', resolve: ({ streamPosition }) => BigInt(streamPosition) }),
    type: t.expose('type', { type: 'String' }),
    payloadVersion: t.expose('payloadVersion', { type: 'Int' }),
    recordedAt: t.expose('recordedAt', { type: 'DateTime' }),
    payload: t.field({
      type: 'JSON',
      nullable: true,
      description: 'As the log keeps it. Needs the right `data`.',
      resolve: ({ payload }, _args, { caller }) => {
        requireRight(caller, 'data');
        return payload ?? null;
      },
    }),
    metadata: t.field({
      type: 'JSON',
      nullable: true,
      description: 'With correlation, causation and actor. Needs the right `data`.',
      resolve: ({ metadata }, _args, { caller }) => {
        requireRight(caller, 'data');
        return metadata;
      },
    }),
    correlationId: t.field({
      type: 'String',
      nullable: true,
      resolve: ({ metadata }) => textOf(metadata.correlationId),
    }),
    causationId: t.field({ type: 'String', nullable: true, resolve: ({ metadata }) => textOf(metadata.causationId) }),
    rows: t.field({
      type: [TouchedRow],
      description: 'The rows that it touches, in each version that this process declares. Needs the right `data`.',
      resolve: ({ position }, _args, { caller, services }) => {
        requireRight(caller, 'data');
        return touchedRows(services.application, position);
      },
    }),
  }),
});

export const EventPage = builder.objectRef<{
  readonly items: StoredEvent[];
  readonly next: string | null;
  readonly searchedTo: bigint | null;
}>('EventPage');
EventPage.implement({
  fields: (t) => ({
    items: t.expose('items', { type: [LogEvent] }),
    next: t.expose('next', { type: 'String', nullable: true }),
    searchedTo: t.expose('searchedTo', {
      type: 'BigInt',
      nullable: true,
      description: 'The position up to which the page has searched.',
    }),
  }),
});

export const StepperColumn = builder.objectRef<{
  readonly name: string;
  readonly versions: string[];
  readonly isHidden: boolean;
}>('StepperColumn');
StepperColumn.implement({
  fields: (t) => ({
    name: t.expose('name', { type: 'String' }),
    versions: t.expose('versions', { type: ['ID'], description: 'The versions that have it.' }),
    isHidden: t.expose('isHidden', { type: 'Boolean' }),
  }),
});

export const RowState = builder.objectRef<State>('RowState');
RowState.implement({
  fields: (t) => ({
    version: t.expose('version', { type: 'ID' }),
    outcome: t.expose('outcome', { type: StepOutcome }),
    before: t.expose('before', {
      type: 'JSON',
      nullable: true,
      description:
        'The row before the event, as JSON by column. Null if there was none. Hidden columns have the value `(hidden)`.',
    }),
    after: t.expose('after', {
      type: 'JSON',
      nullable: true,
      description: 'The row after the event. Null if there is none.',
    }),
    changed: t.field({
      type: ['String'],
      description: 'The columns that differ between the two.',
      resolve: ({ changed }) => [...changed],
    }),
    message: t.expose('message', {
      type: 'String',
      nullable: true,
      description: 'Why the event failed, or why it is left out.',
    }),
  }),
});

export const RowStep = builder.objectRef<{ readonly event: StoredEvent; readonly states: readonly State[] }>('RowStep');
RowStep.implement({
  fields: (t) => ({
    event: t.expose('event', { type: LogEvent }),
    states: t.field({
      type: [RowState],
      description: 'One for each version of `RowHistory.versions`, in that order.',
      resolve: ({ states }) => [...states],
    }),
  }),
});

export const RowHistory = builder.objectRef<{
  readonly key: unknown;
  readonly versions: string[];
  readonly columns: { readonly name: string; readonly versions: string[]; readonly isHidden: boolean }[];
  readonly items: { readonly event: StoredEvent; readonly states: readonly State[] }[];
  readonly next: string | null;
}>('RowHistory');
RowHistory.implement({
  fields: (t) => ({
    key: t.expose('key', { type: 'JSON' }),
    versions: t.expose('versions', {
      type: ['ID'],
      description: 'The versions that are shown, in the order of their numbers.',
    }),
    columns: t.expose('columns', { type: [StepperColumn] }),
    items: t.expose('items', {
      type: [RowStep],
      description: "The row's events in log order, with the row in each version.",
    }),
    next: t.expose('next', { type: 'String', nullable: true }),
  }),
});

export const RowSummary = builder.objectRef<{ readonly key: unknown; readonly row: unknown }>('RowSummary');
RowSummary.implement({
  fields: (t) => ({
    key: t.expose('key', { type: 'JSON' }),
    row: t.expose('row', { type: 'JSON' }),
  }),
});

export const RowPage = builder.objectRef<{
  readonly items: { readonly key: unknown; readonly row: unknown }[];
  readonly next: string | null;
}>('RowPage');
RowPage.implement({
  fields: (t) => ({
    items: t.expose('items', { type: [RowSummary] }),
    next: t.expose('next', { type: 'String', nullable: true }),
  }),
});
