import { defineCommand } from 'citty';
import { act } from '../api/run-action.ts';
import { apiArguments } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

const versionArguments = {
  version: { type: 'positional', description: 'Such as cart_summary@2', required: true },
  ...reasonArgument,
  ...jsonArgument,
  ...apiArguments,
} as const;

export const pause = defineCommand({
  meta: {
    name: 'pause',
    description:
      'Pause a version: no process maintains it until refold resume, also across restarts. If it answers, it goes on answering, from rows that grow stale.',
  },
  args: versionArguments,
  run: withErrorReporting(async ({ args }) => {
    parseVersionId(args.version);
    await act(args, { pause: { version: args.version } });
  }),
});

export const resume = defineCommand({
  meta: { name: 'resume', description: 'Resume a paused version: it continues where it was paused.' },
  args: versionArguments,
  run: withErrorReporting(async ({ args }) => {
    parseVersionId(args.version);
    await act(args, { resume: { version: args.version } });
  }),
});
