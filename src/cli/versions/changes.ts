import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { ageText, clientsText, type UsedChange, type UsedChanges } from '../../runtime/schema-changes/change-usage.ts';
import { type FoldedChange, foldChanges, foldedText } from '../../schema/fold-changes.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteChanges } from '../remote/remote-comparisons.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { json } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { jsonArgument, parseVersionId } from '../shared/version-argument.ts';

type Pending = UsedChanges & { readonly version: string };

export const changes = defineCommand({
  meta: {
    name: 'changes',
    description:
      'Show what changes for clients if a version replaces another: breaking, dangerous and safe changes of the schema. Exits with 1 if clients would break. Changes nothing, except that it migrates an embedded server.',
  },
  args: {
    older: {
      type: 'positional',
      description: 'Such as cart_summary@1. Alone, it is the newer one, compared with the version that answers',
      required: false,
    },
    newer: { type: 'positional', description: 'Such as cart_summary@2. Default: all that wait', required: false },
    all: {
      type: 'boolean',
      description: 'Also show the changes derived from each, such as those of filters, orders and aggregates',
    },
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      const [version, than] = args.newer === undefined ? [args.older] : [args.newer, args.older];
      return remoteChanges(args, version, than);
    }
    const config = await loadConfig(args.config);
    const versions = [args.older, args.newer].filter((id) => id !== undefined).map(parseVersionId);
    const found = await withOperation(config, async ({ schemaEvolution }): Promise<readonly Pending[]> => {
      const [first, second] = versions;
      if (!first) return schemaEvolution.pendingChanges();
      if (second && first.name !== second.name)
        throw new RefoldError(
          'INVALID_CONFIG',
          `'${args.older}' and '${args.newer}' are of different projections; compare versions of one.`,
        );
      const { name, version } = second ?? first;
      const than = second && first.version;
      return [{ version: `${name}@${version}`, ...(await schemaEvolution.changes(name, version, than)) }];
    });
    console.log(
      args.json
        ? json(found)
        : found.map((one) => toText(one, args.all ?? false)).join('\n\n') || 'No version waits to take over.',
    );
    if (found.some(({ breaking }) => breaking.length > 0)) process.exitCode = 1;
  }),
});

// `refold usage` shows the others.
const shownClients = 10;

function toText({ version, than, changes: all, days, recordedDays }: Pending, shownAll: boolean): string {
  const folded = foldChanges(all);
  const lines = folded.flatMap((change) => linesOf(change, shownAll));
  const heads = folded.map(({ head }) => head);
  const breaks = heads.some(({ criticality }) => criticality === 'breaking');
  const count = (criticality: string) => heads.filter((head) => head.criticality === criticality).length;
  const hint = all.length > heads.length && !shownAll ? '; --all shows derived ones' : '';
  const sum =
    all.length === 0
      ? `  clients can't tell the difference`
      : `  ${count('breaking')} breaking, ${count('dangerous')} dangerous, ${count('safe')} safe${hint}`;
  const looked =
    recordedDays === null
      ? '  not all gateways record field usage'
      : `  field usage has been recorded for ${ageText(Math.min(days, recordedDays))}`;
  return [`${version} in place of ${than}`, ...lines, sum, ...(breaks ? [looked] : [])].join('\n');
}

function linesOf(change: FoldedChange<UsedChange>, shownAll: boolean): readonly string[] {
  const { head, derived } = change;
  const askedBy = [head, ...derived].flatMap((one) => one.askedBy);
  return [
    `  ${head.criticality.padEnd(9)}  ${shownAll ? head.message : foldedText(change)}`,
    ...(shownAll ? derived.map(({ criticality, message }) => `    ${criticality.padEnd(9)}  ${message}`) : []),
    ...(askedBy.length > 0 ? [`             used by ${clientsText(askedBy, shownClients)}`] : []),
  ];
}
