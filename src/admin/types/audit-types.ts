import type { InspectedEntry as Entry } from '../../runtime/inspection/audit-log.ts';
import { builder } from './builder.ts';
import { storesAway, VersionState } from './shared-types.ts';

export const AuditEntry = builder.objectRef<Entry>('AuditEntry');
AuditEntry.implement({
  fields: (t) => ({
    id: t.field({
      type: 'ID',
      resolve: ({ isReactor, store, number }) => (isReactor ? `reactor:${number}` : `version:${store}:${number}`),
    }),
    at: t.expose('at', { type: 'DateTime' }),
    of: t.expose('of', { type: 'ID', description: 'The version or the reactor.' }),
    isReactor: t.expose('isReactor', { type: 'Boolean' }),
    operation: t.expose('operation', {
      type: 'String',
      description: 'What was done, such as `building → ready`, `operation` or `rewound`.',
    }),
    from: t.expose('from', { type: VersionState, nullable: true }),
    to: t.expose('to', { type: VersionState, nullable: true }),
    fromPosition: t.expose('fromPosition', { type: 'BigInt', nullable: true }),
    toPosition: t.expose('toPosition', { type: 'BigInt', nullable: true }),
    actor: t.expose('actor', { type: 'String' }),
    reason: t.expose('reason', { type: 'String' }),
    store: t.expose('store', { type: 'String', description: 'The read store that has the entry.' }),
  }),
});

export const AuditPage = builder.objectRef<{
  readonly items: readonly Entry[];
  readonly next: string | null;
  readonly away: readonly string[];
}>('AuditPage');
AuditPage.implement({
  fields: (t) => ({
    items: t.field({ type: [AuditEntry], resolve: ({ items }) => [...items] }),
    next: t.expose('next', { type: 'String', nullable: true }),
    storesAway: t.field({ type: ['String'], description: storesAway, resolve: ({ away }) => [...away] }),
  }),
});
