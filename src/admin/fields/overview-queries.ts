import { foundOrAway } from '../../runtime/inspection/application.ts';
import { namesAway } from '../../runtime/inspection/overview.ts';
import { ActionInput, actionOf, withoutNulls } from '../types/action-inputs.ts';
import { Preview } from '../types/action-types.ts';
import { AuditPage } from '../types/audit-types.ts';
import { builder } from '../types/builder.ts';
import { cursor, isNumber, pageSize, placeAt } from '../types/cursors.ts';
import { Overview } from '../types/overview-types.ts';
import { Reactor } from '../types/reactor-types.ts';
import { Caller, Health } from '../types/shared-types.ts';
import { auditPage } from '../types/version-details.ts';
import { Version, VersionPage } from '../types/version-types.ts';

const AuditFilter = builder.inputType('AuditFilter', {
  fields: (t) => ({
    projection: t.string(),
    version: t.int(),
    reactor: t.string(),
    actor: t.string({ description: 'Exactly this name.' }),
    since: t.field({ type: 'DateTime' }),
    until: t.field({ type: 'DateTime' }),
  }),
});

builder.queryType({
  fields: (t) => ({
    me: t.field({
      type: Caller,
      description: 'The caller: the name of the token, and what it may do.',
      resolve: (_, _args, { caller }) => caller,
    }),
    overview: t.field({ type: Overview, resolve: (_, _args, { services }) => services.overview.read() }),
    versions: t.field({
      type: VersionPage,
      description: 'Versions, those that need attention first. Filtered by a part of the name.',
      args: {
        search: t.arg.string(),
        health: t.arg({ type: [Health] }),
        first: t.arg.int({ defaultValue: 100 }),
        after: t.arg.string(),
      },
      resolve: async (_, { search, health, first, after }, { services }) => {
        const { versions, stores } = await services.overview.read();
        const matching = versions.filter(
          (one) => one.id.includes(search ?? '') && (health?.includes(one.health) ?? true),
        );
        const start = placeAt(after, isNumber) ?? 0;
        const end = start + pageSize(first, 100);
        const next = end < matching.length ? cursor(end) : null;
        return { items: matching.slice(start, end), next, away: namesAway(stores) };
      },
    }),
    version: t.field({
      type: Version,
      nullable: true,
      description:
        'Such as `cart_summary@2`. Null if no registry knows it; `DATABASE_UNAVAILABLE` if a read store that may have it does not respond.',
      args: { id: t.arg.id({ required: true }) },
      resolve: async (_, { id }, { services }) => {
        const { versions, stores } = await services.overview.read();
        return foundOrAway(
          versions.find((one) => one.id === id),
          id,
          namesAway(stores),
        );
      },
    }),
    reactors: t.field({
      type: [Reactor],
      resolve: async (_, _args, { services }) => [...(await services.overview.read()).reactors],
    }),
    reactor: t.field({
      type: Reactor,
      nullable: true,
      args: { name: t.arg.id({ required: true }) },
      resolve: async (_, { name }, { services }) =>
        (await services.overview.read()).reactors.find((one) => one.name === name) ?? null,
    }),
    auditLog: t.field({
      type: AuditPage,
      description: 'Who changed what, when and why, the latest first.',
      args: { filter: t.arg({ type: AuditFilter }), first: t.arg.int({ defaultValue: 50 }), after: t.arg.string() },
      resolve: (_, { filter, first, after }, { services }) =>
        auditPage(services.application, withoutNulls(filter ?? {}), first, after),
    }),
    preview: t.field({
      type: Preview,
      description: 'What an action would do. Changes nothing. Needs only the right `read`.',
      args: { action: t.arg({ type: ActionInput, required: true }) },
      resolve: async (_, { action }, { services, caller }) => {
        const preview = await services.actions.preview(actionOf(action));
        return { ...preview, isAllowed: caller.rights.has(preview.right) };
      },
    }),
  }),
});
