import { defineCommand } from 'citty';
import { Presets, SingleBar } from 'cli-progress';
import { RefoldError } from '../../errors.ts';
import { type Verification, verifyVersion } from '../../runtime/verification/verify.ts';
import { declaredVersion } from '../shared/declared-version.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';

export const verify = defineCommand({
  meta: {
    name: 'verify',
    description: 'Fold the log again and compare with the table of a version. Exits with 1 if they differ.',
  },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@2', required: true },
    'one-of': { type: 'string', description: 'Compare about one in this many rows', default: '1', valueHint: 'N' },
    json: { type: 'boolean', description: 'As JSON' },
    ...configArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const oneOf = Number(args['one-of']);
    if (!Number.isInteger(oneOf) || oneOf < 1)
      throw new RefoldError('INVALID_CONFIG', `--one-of is a whole number from 1 on, found '${args['one-of']}'.`);
    const config = await loadConfig(args.config);
    const projection = declaredVersion(config, args.version);
    const format = '{bar} {percentage}% | position {value} of {total} | ETA {eta_formatted}';
    const bar =
      process.stdout.isTTY && !args.json
        ? new SingleBar({ format, hideCursor: true }, Presets.shades_classic)
        : undefined;
    bar?.start(1, 0);
    const result = await withOperation(config, ({ db, log }) =>
      verifyVersion({
        db,
        log,
        projection,
        readSchema: config.database.readSchema,
        oneOf,
        onProgress(position, of) {
          bar?.setTotal(Number(of));
          bar?.update(Number(position));
        },
      }),
    ).finally(() => bar?.stop());
    console.log(
      args.json
        ? JSON.stringify({ ...result, position: result.position.toString() }, null, 2)
        : toText(projection.id, result),
    );
    if (result.differences > 0) process.exitCode = 1;
  }),
});

function toText(id: string, { position, rowsCompared, differences, samples }: Verification): string {
  if (differences === 0)
    return `${id} equals the log at position ${integer(position)}: ${integer(rowsCompared)} rows compared.`;
  return [
    `${id} differs from the log at position ${integer(position)} in ${integer(differences)} of ${integer(rowsCompared)} rows compared:`,
    ...samples.map(
      ({ key, kind, columns }) =>
        `  ${key} ${kind}${columns.length > 0 ? ` in ${columns.join(', ')}` : ' in the table'}`,
    ),
    `'refold rebuild ${id}' rebuilds the table.`,
  ].join('\n');
}
