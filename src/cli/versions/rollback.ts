import { defineCommand } from 'citty';
import { act } from '../api/run-action.ts';
import { apiArguments } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

export const rollback = defineCommand({
  meta: {
    name: 'rollback',
    description:
      'Take the highest active version of a projection out of service: the version below it answers at once.',
  },
  args: {
    projection: {
      type: 'positional',
      description: 'Such as cart_summary, or cart_summary@2 to be refused if another version is the highest',
      required: true,
    },
    ...reasonArgument,
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const { name, version } = args.projection.includes('@')
      ? parseVersionId(args.projection)
      : { name: args.projection };
    await act(args, { rollback: { projection: name, version } });
  }),
});
