import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import type { Shadow } from '../../store/registry/shadows.ts';
import { act } from '../remote/remote-action.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteShadows } from '../remote/remote-comparisons.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer, json } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { textTable } from '../shared/text-table.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

export const shadow = defineCommand({
  meta: {
    name: 'shadow',
    description:
      'Execute live queries on a ready version too, and show where its answers differ. Exits with 1 if they do.',
  },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@2. Default: all', required: false },
    'one-of': { type: 'string', description: 'Start: compare about one in this many queries', valueHint: 'NUMBER' },
    stop: { type: 'boolean', description: 'Stop it; the findings stay' },
    ...reasonArgument,
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const { version: id, stop = false, 'one-of': oneOf } = args;
    const version = id === undefined ? undefined : parseVersionId(id);
    if (!version && (stop || oneOf !== undefined))
      throw new RefoldError('INVALID_CONFIG', '--one-of and --stop need a version, such as cart_summary@2.');
    if (isRemote(args)) {
      refuseOptions(args);
      if (id !== undefined && stop) await act(args, { stopShadow: { version: id } });
      else if (id !== undefined && oneOf !== undefined)
        await act(args, { startShadow: { version: id, oneOf: Number(oneOf) } });
      else await remoteShadows(args, id);
      return;
    }
    const shadows = await withOperation(await loadConfig(args.config), async ({ schemaEvolution, actor }) => {
      const step = { actor, reason: args.reason ?? 'by hand' };
      if (version && stop) await schemaEvolution.stopShadow(version.name, version.version, step);
      else if (version && oneOf !== undefined)
        await schemaEvolution.startShadow(version.name, version.version, { oneOf: Number(oneOf) }, step);
      return schemaEvolution.shadows();
    });
    const shown = shadows.filter((one) => !version || (one.name === version.name && one.version === version.version));
    console.log(args.json ? json(shown) : shown.map(toText).join('\n\n') || 'There are no comparisons.');
    if (shown.some(({ different, failed }) => different + failed > 0)) process.exitCode = 1;
  }),
});

function toText({ name, version, oneOf, stoppedAt, same, different, failed, skipped, examples }: Shadow): string {
  const heading = `${name}@${version}, one of ${integer(oneOf)} queries${stoppedAt === null ? '' : ' (stopped)'}`;
  const counts = `  ${integer(same)} the same, ${integer(different)} different, ${integer(failed)} not answered, ${integer(skipped)} not compared`;
  if (examples.length === 0) return `${heading}\n${counts}`;
  const rows = examples.map(({ operation, path, times, older, newer }) => [
    operation,
    path || '-',
    integer(times),
    shortened(older),
    shortened(newer),
  ]);
  return [heading, counts, textTable(['operation', 'path', 'times', 'answered', `${name}@${version}`], rows)].join(
    '\n',
  );
}

// `--json` shows the whole value.
function shortened(value: string): string {
  return value.length > 60 ? `${value.slice(0, 59)}…` : value;
}
