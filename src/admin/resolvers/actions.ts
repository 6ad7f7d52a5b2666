import { RefoldError } from '../../errors.ts';
import { requireRight } from '../access/require-right.ts';
import type { MutationResolvers, QueryResolvers, TypeResolvers } from '../schema/resolver-types.ts';
import type { MutationRunArgs, QueryPreviewArgs } from '../schema/sdl.generated.ts';
import { actionOf } from './action-inputs.ts';
import { cursor } from './cursors.ts';

export const actionQueries = {
  preview: async (_, { action }: QueryPreviewArgs, { services, caller }) => {
    const preview = await services.actions.preview(actionOf(action));
    return { ...preview, isAllowed: caller.rights.has(preview.right) };
  },
} satisfies Partial<QueryResolvers>;

export const mutations = {
  run: async (_, { action: given, digest, reason }: MutationRunArgs, { services, caller }) => {
    const action = actionOf(given);
    requireRight(caller, services.actions.rightOf(action.name));
    if (reason.trim() === '') throw new RefoldError('BAD_USER_INPUT', 'The audit log needs a reason.');
    const done = await services.actions.run(action, digest, { actor: caller.name, reason });
    services.overview.forget();
    return { ...done, action: action.name, next: done.next ? cursor(done.next) : null };
  },
} satisfies MutationResolvers;

export const actionTypes = {
  Outcome: {
    continues: ({ continues }) => continues ?? false,
    version: async ({ version }, _, { services }) =>
      version === undefined
        ? null
        : ((await services.overview.readAgain()).versions.find(({ id }) => id === version) ?? null),
    reactor: async ({ reactor }, _, { services }) =>
      reactor === undefined
        ? null
        : ((await services.overview.readAgain()).reactors.find(({ name }) => name === reactor) ?? null),
  },
} satisfies Partial<TypeResolvers>;
