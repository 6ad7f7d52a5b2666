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
    version: {
      type: 'positional',
      description: 'Such as cart_summary@2. Several of one read store take over together, or none of them',
      required: true,
    },
    breaking: { type: 'boolean', description: 'Also if clients of the version that answers would lose fields' },
    ...reasonArgument,
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const allowBreaking = args.breaking ?? false;
    const [id = args.version, ...along] = args._;
    const { name, version } = parseVersionId(id);
    const others = along.map(parseVersionId);
    if (isRemote(args)) {
      refuseOptions(args);
      return act(args, { activate: { version: id, along, allowBreaking } });
    }
    await withOperation(await loadConfig(args.config), ({ lifecycle, actor }) =>
      lifecycle.activate(
        name,
        version,
        { actor, reason: args.reason ?? 'activated by hand' },
        { allowBreaking, along: others },
      ),
    );
    const activated = [{ name, version }, ...others].map((one) => ({ ...one, state: 'active' }));
    if (args.json) console.log(JSON.stringify(others.length === 0 ? activated[0] : activated));
    else for (const one of activated) console.log(`${one.name}@${one.version} is active.`);
  }),
});
