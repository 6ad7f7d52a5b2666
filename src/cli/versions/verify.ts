import { defineCommand } from 'citty';
import { Presets, SingleBar } from 'cli-progress';
import { RefoldError } from '../../errors.ts';
import type { OperatorApi } from '../api/operator-api.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer, json } from '../shared/format.ts';
import { jsonArgument } from '../shared/version-argument.ts';

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
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const { version } = args;
    const oneOf = Number(args['one-of']);
    if (!Number.isInteger(oneOf) || oneOf < 1)
      throw new RefoldError('INVALID_CONFIG', `--one-of is a whole number from 1 on, found '${args['one-of']}'.`);
    if ((version === undefined) !== (args.payloads === true))
      throw new RefoldError('INVALID_CONFIG', `Name a version such as cart_summary@2, or pass '--payloads'.`);
    await withApi(args, async (api) => {
      if (version === undefined) {
        const result = await lastOf<PayloadResult>(api, args, payloadsQuery, {});
        console.log(args.json ? json(result) : payloadsText(result));
        if (result.problems > 0) process.exitCode = 1;
      } else {
        const result = await lastOf<Result>(api, args, rowsQuery, { version, oneOf });
        console.log(args.json ? json(result) : toText(version, result));
        if (result.differences !== '0') process.exitCode = 1;
      }
    });
  }),
});

interface Result {
  readonly position: string;
  readonly rowsCompared: string;
  readonly differences: string;
  readonly samples: readonly { readonly key: string; readonly kind: string; readonly columns: readonly string[] }[];
}

const rowsQuery = `subscription Verify($version: ID!, $oneOf: Int) {
  verify(version: $version, oneOf: $oneOf) {
    position of result { position rowsCompared differences samples { key kind columns } }
  }
}`;

interface PayloadResult {
  readonly position: string;
  readonly events: number;
  readonly problems: number;
  readonly samples: readonly {
    readonly family: string;
    readonly type: string;
    readonly payloadVersion: number;
    readonly position: string;
    readonly streamId: string;
    readonly problem: string;
  }[];
}

const payloadsQuery = `subscription VerifyPayloads {
  verifyPayloads {
    position of
    result { position events problems samples { family type payloadVersion position streamId problem } }
  }
}`;

interface Progress<T> {
  readonly position: string;
  readonly of: string;
  readonly result: T | null;
}

/** Shows the progress of a verification, and returns its result. */
async function lastOf<T>(
  api: OperatorApi,
  args: { readonly json: boolean | undefined },
  document: string,
  variables: object,
): Promise<T> {
  const format = '{bar} {percentage}% | position {value} of {total} | ETA {eta_formatted}';
  const isShown = process.stdout.isTTY && !args.json;
  const bar = isShown ? new SingleBar({ format, hideCursor: true }, Presets.shades_classic) : undefined;
  bar?.start(1, 0);
  try {
    for await (const message of api.subscribe<Readonly<Record<string, Progress<T>>>>(document, variables)) {
      for (const { position, of, result } of Object.values(message)) {
        bar?.setTotal(Number(of));
        bar?.update(Number(position));
        if (result !== null) return result;
      }
    }
  } finally {
    bar?.stop();
  }
  throw new RefoldError(
    'DATABASE_UNAVAILABLE',
    'The verification ended without a result: the process that ran it has stopped.',
  );
}

function payloadsText({ position, events, problems, samples }: PayloadResult): string {
  const at = integer(BigInt(position));
  if (problems === 0)
    return `All payloads up to position ${at} can be read and match their schemas: ${integer(events)} events.`;
  const rest = problems - samples.length;
  return [
    `${integer(problems)} of ${integer(events)} payloads up to position ${at} have problems:`,
    ...samples.map(
      ({ family, type, payloadVersion, position: of, streamId, problem }) =>
        `  ${family} '${type}' (payload version ${payloadVersion}) at position ${of}, stream '${streamId}': ${problem}`,
    ),
    ...(rest > 0 ? [`  and ${integer(rest)} more`] : []),
  ].join('\n');
}

function toText(id: string, { position, rowsCompared, differences, samples }: Result): string {
  const [rows, at] = [integer(BigInt(rowsCompared)), integer(BigInt(position))];
  if (differences === '0') return `${id} equals the log at position ${at}: ${rows} rows compared.`;
  return [
    `${id} differs from the log at position ${at} in ${integer(BigInt(differences))} of ${rows} rows compared:`,
    ...samples.map(
      ({ key, kind, columns }) =>
        `  ${key} ${kind}${columns.length > 0 ? ` in ${columns.join(', ')}` : ' in the table'}`,
    ),
    `'refold rebuild ${id}' rebuilds the table.`,
  ].join('\n');
}
