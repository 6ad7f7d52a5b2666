import { defineCommand } from 'citty';
import { act } from '../remote/remote-action.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { json } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import type { Operation } from '../shared/open-operation.ts';
import { withOperation } from '../shared/open-operation.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

const versionArguments = {
  version: { type: 'positional', description: 'Such as cart_summary@2', required: true },
  ...reasonArgument,
  ...jsonArgument,
  ...configArgument,
  ...remoteArgument,
} as const;

export const pause = defineCommand({
  meta: {
    name: 'pause',
    description:
      'Pause a version: no process maintains it until refold resume, also across restarts. If it answers, it goes on answering, from rows that grow stale.',
  },
  args: versionArguments,
  run: withErrorReporting(({ args }) =>
    change(args, true, ({ lifecycle, actor }, name, version) =>
      lifecycle.pause(name, version, { actor, reason: args.reason ?? 'paused by hand' }),
    ),
  ),
});

export const resume = defineCommand({
  meta: { name: 'resume', description: 'Resume a paused version: it continues where it was paused.' },
  args: versionArguments,
  run: withErrorReporting(({ args }) =>
    change(args, false, ({ lifecycle, actor }, name, version) =>
      lifecycle.resume(name, version, { actor, reason: args.reason ?? 'resumed by hand' }),
    ),
  ),
});

interface ChangeArguments {
  readonly version: string;
  readonly config: string | undefined;
  readonly remote: string | undefined;
  readonly reason: string | undefined;
  readonly json: boolean | undefined;
}

async function change(
  args: ChangeArguments,
  paused: boolean,
  work: (operation: Operation, name: string, version: number) => Promise<void>,
): Promise<void> {
  const { name, version } = parseVersionId(args.version);
  if (isRemote(args)) {
    refuseOptions({ ...args });
    return act(args, { [paused ? 'pause' : 'resume']: { version: args.version } });
  }
  await withOperation(await loadConfig(args.config), (operation) => work(operation, name, version));
  const id = `${name}@${version}`;
  if (args.json) console.log(json({ name, version, paused }));
  else console.log(paused ? `${id} is paused; 'refold resume ${id}' resumes it.` : `${id} is resumed.`);
}
