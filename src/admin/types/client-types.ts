import { boundedCount } from '../../runtime/inspection/application.ts';
import type { UsedChange, UsedChanges } from '../../runtime/schema-changes/change-usage.ts';
import { foldChanges } from '../../schema/fold-changes.ts';
import type { ClientEntry, UsageEntry } from '../../store/browsing/browse-usage.ts';
import { builder } from './builder.ts';
import { Count, Criticality } from './shared-types.ts';

export const FieldUsage = builder.objectRef<UsageEntry>('FieldUsage');
FieldUsage.implement({
  fields: (t) => ({
    path: t.expose('path', { type: 'String', description: 'Such as `CartSummary.totalAmount`.' }),
    client: t.expose('client', { type: 'String' }),
    clientVersion: t.expose('clientVersion', { type: 'String' }),
    pins: t.field({
      type: ['ID'],
      description: 'Such as `cart_summary@1`; empty if it pins nothing.',
      resolve: ({ pins }) => pins.split(',').filter((pin) => pin !== ''),
    }),
    operations: t.expose('operations', { type: 'Int' }),
    lastAt: t.expose('lastAt', { type: 'DateTime' }),
  }),
});

export const FieldUsagePage = builder.objectRef<{
  readonly items: UsageEntry[];
  readonly next: string | null;
  readonly recordedDays: number | null;
}>('FieldUsagePage');
FieldUsagePage.implement({
  fields: (t) => ({
    items: t.expose('items', { type: [FieldUsage] }),
    next: t.expose('next', { type: 'String', nullable: true }),
    recordedDays: t.expose('recordedDays', {
      type: 'Float',
      nullable: true,
      description: 'For how many days all gateways have recorded usage. Null if one of them does not.',
    }),
  }),
});

export const Client = builder.objectRef<ClientEntry>('Client');
Client.implement({
  fields: (t) => ({
    name: t.expose('name', { type: 'String' }),
    version: t.expose('version', { type: 'String' }),
    fields: t.field({ type: Count, resolve: ({ fields }) => boundedCount(fields) }),
    operations: t.expose('operations', {
      type: 'Int',
      description: 'The most operations with one field: at least so many operations.',
    }),
    pins: t.field({ type: ['ID'], resolve: ({ pins }) => [...pins] }),
    lastAt: t.expose('lastAt', { type: 'DateTime' }),
  }),
});

export const ClientPage = builder.objectRef<{ readonly items: ClientEntry[]; readonly next: string | null }>(
  'ClientPage',
);
ClientPage.implement({
  fields: (t) => ({
    items: t.expose('items', { type: [Client] }),
    next: t.expose('next', { type: 'String', nullable: true }),
  }),
});

export const SchemaChange = builder.objectRef<{ readonly change: UsedChange; readonly isDerived: boolean }>(
  'SchemaChange',
);
SchemaChange.implement({
  fields: (t) => ({
    criticality: t.field({ type: Criticality, resolve: ({ change }) => change.criticality }),
    message: t.field({ type: 'String', resolve: ({ change }) => change.message }),
    path: t.field({ type: 'String', nullable: true, resolve: ({ change }) => change.path }),
    isDerived: t.expose('isDerived', {
      type: 'Boolean',
      description: 'Whether it only follows from another change of the list.',
    }),
    usedBy: t.field({
      type: [FieldUsage],
      description: 'For a breaking change: the clients that used it.',
      resolve: ({ change }) => [...change.askedBy],
    }),
  }),
});

export const SchemaChanges = builder.objectRef<{ readonly version: string; readonly found: UsedChanges }>(
  'SchemaChanges',
);
SchemaChanges.implement({
  fields: (t) => ({
    version: t.expose('version', { type: 'ID' }),
    than: t.field({ type: 'ID', resolve: ({ found }) => found.than }),
    changes: t.field({
      type: [SchemaChange],
      resolve: ({ found }) =>
        foldChanges(found.changes).flatMap(({ head, derived }) => [
          { change: head, isDerived: false },
          ...derived.map((change) => ({ change, isDerived: true })),
        ]),
    }),
    breakingCount: t.field({
      type: 'Int',
      resolve: ({ found }) => foldChanges(found.changes).filter(({ head }) => head.criticality === 'breaking').length,
    }),
    days: t.field({
      type: 'Int',
      description: 'How many days of usage were considered.',
      resolve: ({ found }) => found.days,
    }),
    recordedDays: t.field({ type: 'Float', nullable: true, resolve: ({ found }) => found.recordedDays }),
  }),
});
