import { defineCommand } from 'citty';
import { act } from '../api/run-action.ts';
import { apiArguments } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

export const activate = defineCommand({
  meta: { name: 'activate', description: 'Put a ready version into service: queries go to it at once.' },
  args: {
    version: {
      type: 'positional',
      description: 'Such as cart_summary@2. Several of one read store take over together, or none of them',
      required: true,
    },
    breaking: { type: 'boolean', description: 'Also if clients of the version that answers would lose fields' },
    ...reasonArgument,
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const [version = args.version, ...along] = args._;
    for (const id of [version, ...along]) parseVersionId(id);
    await act(args, { activate: { version, along, allowBreaking: args.breaking ?? false } });
  }),
});
