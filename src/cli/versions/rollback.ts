import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { act } from '../api/run-action.ts';
import { apiArguments } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { jsonArgument, reasonArgument } from '../shared/version-argument.ts';

export const rollback = defineCommand({
  meta: {
    name: 'rollback',
    description:
      'Take the highest active version of a projection out of service: the version below it answers at once.',
  },
  args: {
    projection: { type: 'positional', description: 'Such as cart_summary', required: true },
    ...reasonArgument,
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const [projection = '', version] = args.projection.split('@');
    if (version !== undefined)
      throw new RefoldError(
        'INVALID_CONFIG',
        `It is always the highest active version that is rolled back. Name the projection only: '${projection}'.`,
      );
    await act(args, { rollback: { projection } });
  }),
});
