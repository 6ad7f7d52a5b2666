import { Presets, SingleBar } from 'cli-progress';
import { integer } from '../shared/format.ts';
import { warnOfStoresAway } from '../shared/store-texts.ts';
import { textTable } from '../shared/text-table.ts';
import { openRemote } from './remote-api.ts';
import type { RemoteArguments } from './remote-arguments.ts';
import { itemsOf, type RemotePage } from './remote-pages.ts';

interface VerificationMessage {
  readonly verify: {
    readonly position: string;
    readonly of: string;
    readonly result: {
      readonly position: string;
      readonly rowsCompared: string;
      readonly differences: string;
      readonly samples: readonly { readonly key: string; readonly kind: string; readonly columns: readonly string[] }[];
    } | null;
  };
}

/** Has the gateway compare a version with the log. Exits with 1 if they differ. */
export async function remoteVerify(args: RemoteArguments, version: string, oneOf: number): Promise<void> {
  const format = '{bar} {percentage}% | position {value} of {total} | ETA {eta_formatted}';
  const bar =
    process.stdout.isTTY && !args.json
      ? new SingleBar({ format, hideCursor: true }, Presets.shades_classic)
      : undefined;
  bar?.start(1, 0);
  let result: VerificationMessage['verify']['result'] = null;
  try {
    const messages = openRemote(args.remote).subscribe<VerificationMessage>(
      `subscription Verify($version: ID!, $oneOf: Int) {
        verify(version: $version, oneOf: $oneOf) {
          position of result { position rowsCompared differences samples { key kind columns } }
        }
      }`,
      { version, oneOf },
    );
    for await (const { verify } of messages) {
      bar?.setTotal(Number(verify.of));
      bar?.update(Number(verify.position));
      result = verify.result ?? result;
    }
  } finally {
    bar?.stop();
  }
  if (!result) return;
  const { position, rowsCompared, differences, samples } = result;
  if (differences !== '0') process.exitCode = 1;
  if (args.json) return console.log(JSON.stringify(result, null, 2));
  const [rows, at] = [integer(BigInt(rowsCompared)), integer(BigInt(position))];
  if (differences === '0') return console.log(`${version} equals the log at position ${at}: ${rows} rows compared.`);
  console.log(
    [
      `${version} differs from the log at position ${at} in ${integer(BigInt(differences))} of ${rows} rows compared:`,
      ...samples.map(
        ({ key, kind, columns }) =>
          `  ${key} ${kind}${columns.length > 0 ? ` in ${columns.join(', ')}` : ' in the table'}`,
      ),
    ].join('\n'),
  );
}

interface Diff {
  readonly position: string;
  readonly rows: string;
  readonly onlyOlder: string;
  readonly onlyNewer: string;
  readonly columns: readonly { readonly name: string; readonly rows: string }[];
  readonly samples: readonly { readonly key: unknown; readonly older: unknown; readonly newer: unknown }[];
}

interface Changes {
  readonly version: string;
  readonly than: string;
  readonly breakingCount: number;
  readonly changes: readonly {
    readonly criticality: string;
    readonly message: string;
    readonly isDerived: boolean;
    readonly usedBy: readonly {
      readonly client: string;
      readonly clientVersion: string;
      readonly operations: number;
    }[];
  }[];
}

const changesFields = `version than breakingCount
  changes { criticality message isDerived usedBy { client clientVersion operations } }`;

/** Has the gateway compare the rows of two versions. Exits with 1 if they differ. */
export async function remoteDiff(args: RemoteArguments, older: string, newer: string): Promise<void> {
  const { diff, schemaChanges } = await openRemote(args.remote).query<{ diff: Diff; schemaChanges: Changes }>(
    `query Diff($older: ID!, $newer: ID!) {
      diff(older: $older, newer: $newer) {
        position rows onlyOlder onlyNewer columns { name rows } samples { key older newer }
      }
      schemaChanges(version: $newer, than: $older) { ${changesFields} }
    }`,
    { older, newer },
  );
  const differing = [diff.onlyOlder, diff.onlyNewer, ...diff.columns.map(({ rows }) => rows)];
  if (differing.some((rows) => rows !== '0')) process.exitCode = 1;
  if (args.json) return console.log(JSON.stringify({ ...diff, breakingCount: schemaChanges.breakingCount }, null, 2));
  const counts = [
    ['rows compared', diff.rows],
    [`only in ${older}`, diff.onlyOlder],
    [`only in ${newer}`, diff.onlyNewer],
    ...diff.columns.map(({ name, rows }) => [`${name} differs`, rows]),
  ].map(([name = '', rows = '']) => [name, integer(BigInt(rows))]);
  console.log(
    [
      `${older} and ${newer} at position ${integer(BigInt(diff.position))}`,
      textTable(['', 'rows'], counts),
      changesText(schemaChanges, false),
      ...diff.samples.map(
        ({ key, older: a, newer: b }) => `  ${JSON.stringify(key)}: ${JSON.stringify(a)} | ${JSON.stringify(b)}`,
      ),
    ].join('\n'),
  );
}

/** Prints what versions change for clients. Exits with 1 if clients would break. */
export async function remoteChanges(
  args: RemoteArguments & { readonly all: boolean | undefined },
  version: string | undefined,
  than: string | undefined,
): Promise<void> {
  const api = openRemote(args.remote);
  const found =
    version === undefined
      ? (await api.query<{ pendingChanges: Changes[] }>(`{ pendingChanges { ${changesFields} } }`)).pendingChanges
      : [
          (
            await api.query<{ schemaChanges: Changes }>(
              `query Changes($version: ID!, $than: ID) { schemaChanges(version: $version, than: $than) { ${changesFields} } }`,
              { version, than },
            )
          ).schemaChanges,
        ];
  if (found.some(({ breakingCount }) => breakingCount > 0)) process.exitCode = 1;
  if (args.json) return console.log(JSON.stringify(found, null, 2));
  console.log(found.map((one) => changesText(one, args.all ?? false)).join('\n\n') || 'No version waits to take over.');
}

function changesText({ version, than, changes }: Changes, all: boolean): string {
  const shown = changes.filter(({ isDerived }) => all || !isDerived);
  const lines = shown.map(({ criticality, message, isDerived, usedBy }) => {
    const clients = usedBy.map(({ client, clientVersion, operations }) =>
      [client, clientVersion, `(${integer(operations)})`].filter((word) => word !== '').join(' '),
    );
    const used = clients.length === 0 ? '' : `, used by ${clients.join(', ')}`;
    return `  ${isDerived ? '  ' : ''}${criticality.toLowerCase().padEnd(9)}  ${message}${used}`;
  });
  return [
    `${version} in place of ${than}`,
    ...lines,
    ...(lines.length === 0 ? ["  clients can't tell the difference"] : []),
  ].join('\n');
}

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

/** Prints the findings of shadow comparisons, of one version or of all. Exits with 1 if answers differ. */
export async function remoteShadows(args: RemoteArguments, version: string | undefined): Promise<void> {
  const api = openRemote(args.remote);
  const query = `query Shadows($after: String) {
    versions(after: $after) {
      items { id shadow { oneOf startedAt stoppedAt same different failed skipped examples { operation path times older newer } } }
      next
      storesAway
    }
  }`;
  const { items, storesAway } = await itemsOf(
    async (after) => (await api.query<{ versions: RemotePage<ShadowVersion> }>(query, { after })).versions,
    Number.POSITIVE_INFINITY,
  );
  warnOfStoresAway(storesAway);
  const found = items.flatMap(({ id, shadow }) =>
    shadow && (version === undefined || id === version) ? [{ version: id, ...shadow }] : [],
  );
  if (found.some(({ different, failed }) => different + failed > 0)) process.exitCode = 1;
  if (args.json) return console.log(JSON.stringify(found, null, 2));
  const texts = found.map((one) =>
    [
      `${one.version}, one of ${integer(one.oneOf)} queries${one.stoppedAt === null ? '' : ' (stopped)'}`,
      `  ${integer(one.same)} the same, ${integer(one.different)} different, ${integer(one.failed)} not answered, ${integer(one.skipped)} not compared`,
      ...one.examples.map(
        ({ operation, path, times, older, newer }) =>
          `  ${operation} ${path || '-'}, ${integer(times)} times: ${older ?? '(hidden)'} | ${newer ?? '(hidden)'}`,
      ),
    ].join('\n'),
  );
  console.log(texts.join('\n\n') || 'There are no comparisons.');
}
