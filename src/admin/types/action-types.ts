import type { AdminRight } from '../../config/admin-options.ts';
import type { Action, Done } from '../../runtime/actions/action.ts';
import type { Preview as Previewed } from '../../runtime/actions/actions.ts';
import { builder } from './builder.ts';
import { Reactor } from './reactor-types.ts';
import { ActionName, Count, Right } from './shared-types.ts';
import { Version } from './version-types.ts';

export const Preview = builder.objectRef<Previewed & { readonly isAllowed: boolean }>('Preview');
Preview.implement({
  description: 'What an action would do. Nothing has changed.',
  fields: (t) => ({
    action: t.field({ type: ActionName, resolve: ({ action }) => action }),
    of: t.expose('of', {
      type: 'ID',
      nullable: true,
      description: 'The version, the reactor or the projection that it concerns. Null if it concerns several.',
    }),
    right: t.field({ type: Right, description: 'The right that it needs.', resolve: ({ right }): AdminRight => right }),
    isAllowed: t.exposeBoolean('isAllowed', { description: 'Whether the caller has the right.' }),
    summary: t.exposeString('summary', { description: 'What it does, in one sentence.' }),
    details: t.stringList({
      description: 'What else to know before: figures and consequences.',
      resolve: ({ details = [] }) => [...details],
    }),
    warnings: t.stringList({
      description: 'What may go wrong or hurt. Show them with emphasis.',
      resolve: ({ warnings = [] }) => [...warnings],
    }),
    refusal: t.string({
      nullable: true,
      description: 'Why it would be refused in the present state. Null if it would not be.',
      resolve: ({ refusal }) => refusal ?? null,
    }),
    overcomeBy: t.stringList({
      description:
        'Whether the input can be changed to overcome `refusal`: the names of fields to set, such as `force` or `allowBreaking`.',
      resolve: ({ overcomeBy = [] }) => [...overcomeBy],
    }),
    concerns: t.field({
      type: Count,
      nullable: true,
      description: 'How many things it concerns, such as dead letters. Null if it concerns one.',
      resolve: ({ concerns }) => concerns ?? null,
    }),
    digest: t.expose('digest', {
      type: 'String',
      nullable: true,
      description: 'For `run`. Null if it would be refused.',
    }),
  }),
});

export const Outcome = builder.objectRef<
  Omit<Done, 'next'> & { readonly action: Action['name']; readonly next: string | null }
>('Outcome');
Outcome.implement({
  fields: (t) => ({
    action: t.field({ type: ActionName, resolve: ({ action }) => action }),
    summary: t.exposeString('summary', { description: 'What was done, in one sentence.' }),
    folded: t.int({
      nullable: true,
      description: 'For dead letters: how many were folded or handled, discarded, and left.',
      resolve: ({ folded }) => folded ?? null,
    }),
    discarded: t.int({ nullable: true, resolve: ({ discarded }) => discarded ?? null }),
    left: t.int({ nullable: true, resolve: ({ left }) => left ?? null }),
    continues: t.boolean({
      description: 'For dead letters: whether a processor that had stopped continues.',
      resolve: ({ continues }) => continues ?? false,
    }),
    next: t.exposeString('next', {
      nullable: true,
      description: 'For dead letters: `after` for the next run; null if all that match were visited.',
    }),
    version: t.field({
      type: Version,
      nullable: true,
      description: 'The version that it concerned, as it is now.',
      resolve: async ({ version }, _args, { services }) =>
        version === undefined
          ? null
          : ((await services.overview.readAgain()).versions.find(({ id }) => id === version) ?? null),
    }),
    reactor: t.field({
      type: Reactor,
      nullable: true,
      resolve: async ({ reactor }, _args, { services }) =>
        reactor === undefined
          ? null
          : ((await services.overview.readAgain()).reactors.find(({ name }) => name === reactor) ?? null),
    }),
  }),
});
