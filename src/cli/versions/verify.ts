import { defineCommand } from 'citty';
import { Presets, SingleBar } from 'cli-progress';
import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { type Verification, verifyVersion } from '../../runtime/verification/verify.ts';
import { type PayloadVerification, verifyPayloads } from '../../runtime/verification/verify-payloads.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteVerify } from '../remote/remote-comparisons.ts';
import { declaredVersion } from '../shared/declared-version.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';

export const verify = defineCommand({
  meta: {
    name: 'verify',
    description:
      'Fold the log again and compare with the table of a version, or check all payloads. Exits with 1 if something differs.',
  },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@2', required: false },
    payloads: { type: 'boolean', description: 'Upcast the payloads of all events and check them by their schemas' },
    'one-of': { type: 'string', description: 'Compare about one in this many rows', default: '1', valueHint: 'N' },
    json: { type: 'boolean', description: 'As JSON' },
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const oneOf = Number(args['one-of']);
    if (!Number.isInteger(oneOf) || oneOf < 1)
      throw new RefoldError('INVALID_CONFIG', `--one-of is a whole number from 1 on, found '${args['one-of']}'.`);
    if ((args.version === undefined) !== (args.payloads === true))
      throw new RefoldError('INVALID_CONFIG', `Name a version such as cart_summary@2, or pass '--payloads'.`);
    if (isRemote(args)) {
      refuseOptions(args, 'payloads');
      return remoteVerify(args, args.version ?? '', oneOf);
    }
    const config = await loadConfig(args.config);
    if (args.version === undefined) await payloads(config, args.json === true);
    else await rows(config, declaredVersion(config, args.version), { oneOf, json: args.json === true });
  }),
});

async function rows(
  config: Config,
  projection: Projection,
  { oneOf, json }: { readonly oneOf: number; readonly json: boolean },
): Promise<void> {
  const { readSchema } = config.database;
  const result = await withProgress(json, (onProgress) =>
    withOperation(config, async ({ dbOf, log }) => {
      const db = await dbOf(projection.name, projection.version);
      return verifyVersion({ db, log, projection, readSchema, oneOf, onProgress });
    }),
  );
  console.log(json ? toJson(result) : toText(projection.id, result));
  if (result.differences > 0) process.exitCode = 1;
}

async function payloads(config: Config, json: boolean): Promise<void> {
  const result = await withProgress(json, (onProgress) =>
    withOperation(config, ({ log }) => verifyPayloads(log, onProgress)),
  );
  console.log(json ? toJson(result) : payloadsText(result));
  if (result.problems > 0) process.exitCode = 1;
}

type OnProgress = (position: GlobalPosition, of: GlobalPosition) => void;

async function withProgress<T>(json: boolean, work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const format = '{bar} {percentage}% | position {value} of {total} | ETA {eta_formatted}';
  const bar =
    process.stdout.isTTY && !json ? new SingleBar({ format, hideCursor: true }, Presets.shades_classic) : undefined;
  bar?.start(1, 0);
  const onProgress: OnProgress = (position, of) => {
    bar?.setTotal(Number(of));
    bar?.update(Number(position));
  };
  return work(onProgress).finally(() => bar?.stop());
}

function toJson(result: Verification | PayloadVerification): string {
  return JSON.stringify(result, (_, value) => (typeof value === 'bigint' ? value.toString() : value), 2);
}

function payloadsText({ position, events, problems, samples }: PayloadVerification): string {
  if (problems === 0)
    return `All payloads up to position ${integer(position)} can be read and match their schemas: ${integer(events)} events.`;
  const rest = problems - samples.length;
  return [
    `${integer(problems)} of ${integer(events)} payloads up to position ${integer(position)} have problems:`,
    ...samples.map(
      ({ family, type, payloadVersion, position: at, streamId, problem }) =>
        `  ${family} '${type}' (payload version ${payloadVersion}) at position ${at}, stream '${streamId}': ${problem}`,
    ),
    ...(rest > 0 ? [`  and ${integer(rest)} more`] : []),
  ].join('\n');
}

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
