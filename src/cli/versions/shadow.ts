import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { itemsOf } from '../api/operator-api.ts';
import { act } from '../api/run-action.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer, json } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

export const shadow = defineCommand({
  meta: {
    name: 'shadow',
    description:
      'Execute live queries on a ready version too, and show where its responses differ. Exits with 1 if they do.',
  },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@2. Default: all', required: false },
    'one-of': { type: 'string', description: 'Start: compare about one in this many queries', valueHint: 'NUMBER' },
    stop: { type: 'boolean', description: 'Stop it; the findings stay' },
    ...reasonArgument,
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const { version, stop = false, 'one-of': oneOf } = args;
    if (version !== undefined) parseVersionId(version);
    else if (stop || oneOf !== undefined)
      throw new RefoldError('INVALID_CONFIG', '--one-of and --stop need a version, such as cart_summary@2.');
    if (stop) return act(args, { stopShadow: { version } });
    if (oneOf !== undefined) return act(args, { startShadow: { version, oneOf: Number(oneOf) } });
    const { items } = await withApi(args, (api) => itemsOf<ShadowVersion>(api, query));
    const found = items.flatMap(({ id, shadow: of }) =>
      of && (version === undefined || id === version) ? [{ version: id, ...of }] : [],
    );
    console.log(args.json ? json(found) : found.map(toText).join('\n\n') || 'There are no comparisons.');
    if (found.some(({ different, failed }) => different + failed > 0)) process.exitCode = 1;
  }),
});

interface ShadowVersion {
  readonly id: string;
  readonly shadow: {
    readonly oneOf: number;
    readonly stoppedAt: string | null;
    readonly same: number;
    readonly different: number;
    readonly failed: number;
    readonly skipped: number;
    readonly examples: readonly {
      readonly operation: string;
      readonly path: string;
      readonly times: number;
      readonly older: string | null;
      readonly newer: string | null;
    }[];
  } | null;
}

const query = `query Shadows($after: String) {
  versions(after: $after) {
    items {
      id
      shadow { oneOf startedAt stoppedAt same different failed skipped examples { operation path times older newer seenAt } }
    }
    next
    storesAway
  }
}`;

function toText(found: { readonly version: string } & NonNullable<ShadowVersion['shadow']>): string {
  const { version, oneOf, stoppedAt, same, different, failed, skipped, examples } = found;
  const heading = `${version}, one of ${integer(oneOf)} queries${stoppedAt === null ? '' : ' (stopped)'}`;
  const counts = `  ${integer(same)} the same, ${integer(different)} different, ${integer(failed)} failed, ${integer(skipped)} not compared`;
  if (examples.length === 0) return `${heading}\n${counts}`;
  const rows = examples.map(({ operation, path, times, older, newer }) => [
    operation,
    path || '-',
    integer(times),
    shortened(older),
    shortened(newer),
  ]);
  return [heading, counts, textTable(['operation', 'path', 'times', 'answered', version], rows)].join('\n');
}

// `--json` shows the whole value.
function shortened(value: string | null): string {
  if (value === null) return '(hidden)';
  return value.length > 60 ? `${value.slice(0, 59)}…` : value;
}
