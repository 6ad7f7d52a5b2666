import { defineCommand } from 'citty';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer, json } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';
import { jsonArgument } from '../shared/version-argument.ts';
import { breakingLines, type Changes, changesFields } from './changes.ts';

export const diff = defineCommand({
  meta: {
    name: 'diff',
    description:
      'Compare two versions of a projection: their rows, over the columns that both have, and what clients of the older one would lose. Exits with 1 if rows differ.',
  },
  args: {
    older: { type: 'positional', description: 'Such as cart_summary@1', required: true },
    newer: { type: 'positional', description: 'Such as cart_summary@2', required: true },
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const { older, newer } = args;
    const found = await withApi(args, (api) => api.query<Found>(query, { older, newer }));
    const { onlyOlder, onlyNewer, columns } = found.diff;
    if ([onlyOlder, onlyNewer, ...columns.map(({ rows }) => rows)].some((rows) => rows !== '0')) process.exitCode = 1;
    console.log(args.json ? json({ ...found.diff, changes: found.schemaChanges }) : toText(older, newer, found));
  }),
});

interface Found {
  readonly diff: {
    readonly position: string;
    readonly rows: string;
    readonly onlyOlder: string;
    readonly onlyNewer: string;
    readonly columns: readonly { readonly name: string; readonly rows: string }[];
    readonly samples: readonly { readonly key: unknown; readonly older: unknown; readonly newer: unknown }[];
    readonly partial: readonly string[];
  };
  readonly schemaChanges: Changes;
}

const query = `query Diff($older: ID!, $newer: ID!) {
  diff(older: $older, newer: $newer) {
    older newer position rows onlyOlder onlyNewer columns { name rows } samples { key older newer } partial
  }
  schemaChanges(version: $newer, than: $older) { ${changesFields} }
}`;

function toText(older: string, newer: string, { diff: found, schemaChanges }: Found): string {
  const counts = [
    ['rows compared', found.rows],
    [`only in ${older}`, found.onlyOlder],
    [`only in ${newer}`, found.onlyNewer],
    ...found.columns.map(({ name, rows }) => [`${name} differs`, rows]),
  ].map(([name = '', rows = '']) => [name, integer(BigInt(rows))]);
  const lost = breakingLines(schemaChanges);
  const samples = found.samples.map(
    ({ key, older: a, newer: b }) => `  ${JSON.stringify(key)}: ${JSON.stringify(a)} | ${JSON.stringify(b)}`,
  );
  return [
    `${older} and ${newer} at position ${integer(BigInt(found.position))}`,
    ...found.partial,
    textTable(['', 'rows'], counts),
    lost.length > 0
      ? `clients of ${older} would lose with ${newer}:\n${lost.join('\n')}`
      : `clients of ${older} would lose nothing with ${newer}`,
    ...(samples.length > 0 ? [`first rows that differ (${older} | ${newer}):`, ...samples] : []),
  ].join('\n');
}
