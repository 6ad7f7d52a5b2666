import { defineCommand } from 'citty';
import { telling } from './exit-with-error.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { withOperation } from './open-operation.ts';
import { reasonArgument } from './version-argument.ts';

export const rollback = defineCommand({
  meta: {
    name: 'rollback',
    description: 'Take the highest active version of a projection out of service: the one below answers at once.',
  },
  args: {
    projection: { type: 'positional', description: 'Such as cart_summary', required: true },
    ...reasonArgument,
    ...configArgument,
  },
  run: telling(async ({ args }) => {
    const name = args.projection.replace(/@\d+$/, '');
    const { from, to } = await withOperation(await loadConfig(args.config), ({ lifecycle, actor }) =>
      lifecycle.rollback(name, { actor, reason: args.reason ?? 'rolled back by hand' }),
    );
    console.log(
      `${name}@${to} answers again. ${name}@${from} stays current and ready: 'refold activate ${name}@${from}' puts it back.`,
    );
  }),
});
