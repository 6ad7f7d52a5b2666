import { RefoldError } from '../../errors.ts';
import { requireRight } from '../access/require-right.ts';
import { ActionInput, actionOf } from '../types/action-inputs.ts';
import { Outcome } from '../types/action-types.ts';
import { builder } from '../types/builder.ts';
import { cursor } from '../types/cursors.ts';

builder.mutationType({
  fields: (t) => ({
    run: t.field({
      type: Outcome,
      description:
        "Runs an action that was previewed. Needs the right of the action. `digest` is that of the preview; it is refused with `PREVIEW_OUTDATED` if what the preview described has changed since. The token's name and the reason are recorded in the audit log.",
      args: {
        action: t.arg({ type: ActionInput, required: true }),
        digest: t.arg.string({ required: true }),
        reason: t.arg.string({ required: true }),
      },
      resolve: async (_, { action: given, digest, reason }, { services, caller }) => {
        const action = actionOf(given);
        requireRight(caller, services.actions.rightOf(action.name));
        if (reason.trim() === '') throw new RefoldError('BAD_USER_INPUT', 'The audit log needs a reason.');
        const done = await services.actions.run(action, digest, { actor: caller.name, reason });
        services.overview.forget();
        return { ...done, action: action.name, next: done.next ? cursor(done.next) : null };
      },
    }),
  }),
});
