import type { InspectedApplication } from '../../runtime/inspection/application.ts';
import { type AuditFilter, readAuditPage } from '../../runtime/inspection/audit-log.ts';
import type { QueryResolvers, TypeResolvers } from '../schema/resolver-types.ts';
import type { QueryAuditLogArgs } from '../schema/sdl.generated.ts';
import { withoutNulls } from './action-inputs.ts';
import { cursor, isAuditPlace, type Page, pageSize, placeAt } from './cursors.ts';

export async function auditPage(application: InspectedApplication, filter: AuditFilter, { first, after }: Page) {
  const place = placeAt(after, isAuditPlace);
  const { entries, next, away } = await readAuditPage(application, filter, pageSize(first, 50), place);
  return { items: entries, next: next && cursor(next), storesAway: away };
}

export const auditQueries = {
  auditLog: (_, { filter, ...page }: QueryAuditLogArgs, { services }) =>
    auditPage(services.application, withoutNulls(filter ?? {}), page),
} satisfies Partial<QueryResolvers>;

export const auditTypes = {
  AuditEntry: {
    id: ({ isReactor, store, number }) => (isReactor ? `reactor:${number}` : `version:${store}:${number}`),
  },
} satisfies Partial<TypeResolvers>;
