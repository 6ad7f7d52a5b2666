import { defineCommand } from 'citty';
import { act } from '../remote/remote-action.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

export const activate = defineCommand({
  meta: { name: 'activate', description: 'Put a ready version into service: queries go to it at once.' },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@2', required: true },
    breaking: { type: 'boolean', description: 'Also if clients of the version that answers would lose fields' },
    ...reasonArgument,
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const { name, version } = parseVersionId(args.version);
    if (isRemote(args)) {
      refuseOptions(args);
      return act(args, { activate: { version: args.version, allowBreaking: args.breaking ?? false } });
    }
    await withOperation(await loadConfig(args.config), ({ lifecycle, actor }) =>
      lifecycle.activate(
        name,
        version,
        { actor, reason: args.reason ?? 'activated by hand' },
        { allowBreaking: args.breaking ?? false },
      ),
    );
    console.log(args.json ? JSON.stringify({ name, version, state: 'active' }) : `${name}@${version} is active.`);
  }),
});
