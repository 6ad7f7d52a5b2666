import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { act } from '../api/run-action.ts';
import { apiArguments } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

export const retire = defineCommand({
  meta: { name: 'retire', description: 'End the maintenance of a version. Its table is dropped after a grace period.' },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@1', required: true },
    grace: { type: 'string', description: 'Hours until its table is dropped', default: '24', valueHint: 'HOURS' },
    force: { type: 'boolean', description: 'Also if it is the version that answers' },
    yes: { type: 'boolean', description: 'Also if running processes lose it, or a unique rule ends', alias: 'y' },
    ...reasonArgument,
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    parseVersionId(args.version);
    const graceHours = Number(args.grace);
    if (!(graceHours >= 0))
      throw new RefoldError('INVALID_CONFIG', `--grace is a number of hours, found '${args.grace}'.`);
    await act(args, {
      retire: { version: args.version, graceHours, force: args.force ?? false, allowLoss: args.yes ?? false },
    });
  }),
});
