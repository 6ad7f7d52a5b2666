import { defineCommand } from 'citty';
import { type Projection, partialText } from '../../projections/projection/projection.ts';
import { changesBetween } from '../../runtime/schema-changes/schema-changes.ts';
import { storeOfBoth } from '../../runtime/stores/steps-of-stores.ts';
import { diffVersions, type VersionDiff } from '../../runtime/verification/diff.ts';
import { foldChanges, foldedText } from '../../schema/fold-changes.ts';
import type { VersionChange } from '../../schema/version-changes.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteDiff } from '../remote/remote-comparisons.ts';
import { declaredVersion } from '../shared/declared-version.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { textTable } from '../shared/text-table.ts';

export const diff = defineCommand({
  meta: {
    name: 'diff',
    description:
      'Compare two versions of a projection: their rows, over the columns that both have, and what clients of the older one would lose. Exits with 1 if rows differ.',
  },
  args: {
    older: { type: 'positional', description: 'Such as cart_summary@1', required: true },
    newer: { type: 'positional', description: 'Such as cart_summary@2', required: true },
    json: { type: 'boolean', description: 'As JSON' },
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteDiff(args, args.older, args.newer);
    }
    const config = await loadConfig(args.config);
    const older = declaredVersion(config, args.older);
    const newer = declaredVersion(config, args.newer);
    const { result, changes } = await withOperation(config, async ({ db, find }) => {
      const store = await storeOfBoth(find, older, newer);
      return {
        result: await diffVersions(store.db, config.database.readSchema, older, newer),
        changes: await changesBetween(db, config, newer.name, older.version, newer.version),
      };
    });
    const breaking = (changes?.changes ?? []).filter(({ criticality }) => criticality === 'breaking');
    console.log(
      args.json
        ? JSON.stringify(
            { ...result, position: result.position.toString(), breaking: breaking.map(({ message }) => message) },
            null,
            2,
          )
        : toText([older, newer], result, breaking),
    );
    if (result.samples.length > 0) process.exitCode = 1;
  }),
});

function toText(
  versions: readonly [Projection, Projection],
  result: VersionDiff,
  breaking: readonly VersionChange[],
): string {
  const [older, newer] = versions.map(({ id }) => id) as [string, string]; // of two
  const lost = foldChanges(breaking).map((change) => `  ${foldedText(change)}`);
  const counts = [
    ['rows compared', integer(result.rows)],
    [`only in ${older}`, integer(result.onlyOlder)],
    [`only in ${newer}`, integer(result.onlyNewer)],
    ...Object.entries(result.columns).map(([name, rows]) => [`${name} differs`, integer(rows)]),
  ];
  const samples = result.samples.map(
    ({ key, older: a, newer: b }) => `  ${JSON.stringify(key)}: ${JSON.stringify(a)} | ${JSON.stringify(b)}`,
  );
  const heading = `${older} and ${newer} at position ${integer(result.position)}`;
  const partial = versions.flatMap((version) => {
    const text = partialText(version);
    return text === null ? [] : [`${version.id} is partial: ${text}`];
  });
  return [
    heading,
    ...partial,
    textTable(['', 'rows'], counts),
    lost.length > 0
      ? `clients of ${older} would lose with ${newer}:\n${lost.join('\n')}`
      : `clients of ${older} would lose nothing with ${newer}`,
    ...(samples.length > 0 ? [`first rows that differ (${older} | ${newer}):`, ...samples] : []),
  ].join('\n');
}
