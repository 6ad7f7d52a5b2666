import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { ageText, clientsText } from '../../runtime/schema-changes/change-usage.ts';
import type { OperatorApi } from '../api/operator-api.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { json } from '../shared/format.ts';
import { jsonArgument, parseVersionId } from '../shared/version-argument.ts';

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
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const names = [args.older, args.newer].filter((id) => id !== undefined).map((id) => parseVersionId(id).name);
    if (new Set(names).size > 1)
      throw new RefoldError(
        'INVALID_CONFIG',
        `'${args.older}' and '${args.newer}' are of different projections; compare versions of one.`,
      );
    const [version, than] = args.newer === undefined ? [args.older] : [args.newer, args.older];
    const found = await withApi(args, (api) => readChanges(api, version, than));
    console.log(
      args.json
        ? json(found)
        : found.map((one) => toText(one, args.all ?? false)).join('\n\n') || 'No version waits to take over.',
    );
    if (found.some(({ breakingCount }) => breakingCount > 0)) process.exitCode = 1;
  }),
});

interface Change {
  readonly criticality: string;
  readonly message: string;
  readonly isDerived: boolean;
  readonly usedBy: readonly {
    readonly client: string;
    readonly clientVersion: string;
    readonly operations: number;
    readonly lastAt: string;
  }[];
}

export interface Changes {
  readonly version: string;
  readonly than: string;
  readonly breakingCount: number;
  readonly days: number;
  readonly recordedDays: number | null;
  /** Each is followed by those that derive from it. */
  readonly changes: readonly Change[];
}

export const changesFields = `version than breakingCount days recordedDays
  changes { criticality message path isDerived usedBy { path client clientVersion operations lastAt } }`;

async function readChanges(api: OperatorApi, version?: string, than?: string): Promise<readonly Changes[]> {
  if (version === undefined)
    return (await api.query<{ pendingChanges: Changes[] }>(`{ pendingChanges { ${changesFields} } }`)).pendingChanges;
  const query = `query Changes($version: ID!, $than: ID) { schemaChanges(version: $version, than: $than) { ${changesFields} } }`;
  return [(await api.query<{ schemaChanges: Changes }>(query, { version, than })).schemaChanges];
}

// `refold usage` shows the others.
const shownClients = 10;

function toText({ version, than, changes: all, days, recordedDays }: Changes, shownAll: boolean): string {
  const groups = groupsOf(all);
  const heads = groups.map(([head]) => head);
  const breaks = heads.some(({ criticality }) => criticality === 'BREAKING');
  const count = (criticality: string) => heads.filter((head) => head.criticality === criticality).length;
  const hint = all.length > heads.length && !shownAll ? '; --all shows derived ones' : '';
  const sum =
    all.length === 0
      ? `  clients can't tell the difference`
      : `  ${count('BREAKING')} breaking, ${count('DANGEROUS')} dangerous, ${count('SAFE')} safe${hint}`;
  const looked =
    recordedDays === null
      ? '  not all gateways record field usage'
      : `  field usage has been recorded for ${ageText(Math.min(days, recordedDays))}`;
  const lines = groups.flatMap((group) => linesOf(group, shownAll));
  return [`${version} in place of ${than}`, ...lines, sum, ...(breaks ? [looked] : [])].join('\n');
}

type Group = readonly [head: Change, ...derived: Change[]];

function groupsOf(all: readonly Change[]): readonly Group[] {
  const groups: [Change, ...Change[]][] = [];
  for (const change of all) {
    if (change.isDerived) groups.at(-1)?.push(change);
    else groups.push([change]);
  }
  return groups;
}

function linesOf([head, ...derived]: Group, shownAll: boolean): readonly string[] {
  const usedBy = [head, ...derived].flatMap((one) => one.usedBy);
  const more = shownAll || derived.length === 0 ? '' : ` (+ ${derived.length} derived)`;
  return [
    `  ${lineOf(head)}${more}`,
    ...(shownAll ? derived.map((change) => `    ${lineOf(change)}`) : []),
    ...(usedBy.length > 0 ? [`             used by ${clientsText(usedBy, shownClients)}`] : []),
  ];
}

function lineOf({ criticality, message }: Change): string {
  return `${criticality.toLowerCase().padEnd(9)}  ${message}`;
}

/** The breaking changes, without those that derive from them, a line for each. */
export function breakingLines({ changes: all }: Changes): readonly string[] {
  return groupsOf(all)
    .filter(([head]) => head.criticality === 'BREAKING')
    .map(([head, ...derived]) => `  ${head.message}${derived.length === 0 ? '' : ` (+ ${derived.length} derived)`}`);
}
