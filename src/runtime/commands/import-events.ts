import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { RefoldError } from '../../errors.ts';
import type { Import, ImportLine } from '../../events/define-import.ts';
import type { StalledCommits } from '../../store/append-queue/stalled-commits.ts';
import type { AppendVerdict, EventLog } from '../../store/event-log.ts';
import { isImported, recordImported } from '../../store/log/import-ranges.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { reasonOf } from '../../thrown.ts';
import { createImportPace } from './import-pace.ts';
import { type ImportRange, type PlacedAppend, rangesOf } from './import-ranges.ts';
import { type OutageNote, throughOutages } from './through-outages.ts';

export interface ImportProgress {
  /** How much of the file is imported, in bytes of the file as it is stored (compressed, if it is). */
  readonly bytesRead: number;
  /** 0 for a pipe. */
  readonly bytesTotal: number;
  readonly lines: number;
  /** Events written by this run. */
  readonly written: number;
  /** Events that were already in the log from an earlier run. */
  readonly skipped: number;
  /** Recent events written per second, without skipped ones; null before the first write. */
  readonly eventsPerSecond: number | null;
  /** The estimated time for the rest of the file, if all of it must be written; null before the first write, and for a pipe. */
  readonly secondsLeft: number | null;
}

export interface ImportOptions {
  /** Stores which ranges of the file are already in the log. */
  readonly db: Queryable;
  readonly log: Pick<EventLog, 'appendInOrder'>;
  /** Ends the wait for a commit that may never end, as if the database were away. @default none is noticed */
  readonly unlessStalled?: StalledCommits['run'];
  readonly definition: Import;
  readonly file: string;
  readonly signal?: AbortSignal;
  onProgress?(progress: ImportProgress): void;
  /** For how long an outage of the database may last, in milliseconds, before the import gives up. @default 300,000 */
  readonly outageTimeoutMs?: number;
  onOutage?(note: OutageNote): void;
}

// A restart, a fail-over or a deployment of the database ends within this time. A longer outage needs an operator.
const longestOutage = 300_000;

/**
 * Streams a file (plain or gzip) into the log, in the order of the file. A line can therefore build on any earlier line, whatever its stream.
 * While one statement runs, the lines of the next are read. Ranges that an earlier run has written are skipped. During an outage of the database
 * the import waits: because of its keys, an append whose answer was lost is not written twice.
 *
 * @throws RefoldError `IMPORT_FAILED` naming the line. Events already written stay, and a second run continues.
 */
export async function importEvents(options: ImportOptions): Promise<ImportProgress> {
  const { definition, file, signal, unlessStalled = (write) => write() } = options;
  const bytesTotal = await sizeOf(file);
  const pace = createImportPace();
  let [bytesRead, characters, lines, written, skipped] = [0, 0, 0, 0, 0];
  let progress: ImportProgress = {
    bytesRead,
    bytesTotal,
    lines,
    written,
    skipped,
    eventsPerSecond: null,
    secondsLeft: null,
  };
  const failed = (line: number, cause: unknown, place: string) =>
    cause instanceof RefoldError && cause.code === 'IMPORT_FAILED'
      ? cause
      : importFailed({ definition, file, line, place, cause });

  async function* placed(): AsyncIterable<PlacedAppend> {
    const counted = (async function* () {
      for await (const line of linesOf(file, signal, (bytes) => (bytesRead = bytes))) {
        lines = line.number;
        characters += line.text.length;
        yield line;
      }
    })();
    for await (const append of definition.toAppends(counted)) {
      if (signal?.aborted) return;
      yield { append, line: lines, bytesRead, characters };
    }
  }

  async function settle(range: ImportRange): Promise<void> {
    const { line } = range.last;
    const settled = await throughOutages(() => unlessStalled(() => settleRange(options, range)), {
      timeoutMs: options.outageTimeoutMs ?? longestOutage,
      signal,
      onOutage: (note) => options.onOutage?.(note),
    }).catch((cause: unknown) => {
      if (signal?.aborted && isOutage(cause)) return undefined;
      throw failed(line, cause, `at or before line ${line}`);
    });
    if (!settled) return;
    for (const { kind, placed: one, error } of settled) {
      if (kind === 'refused') throw failed(one.line, error, `at or before line ${one.line}`);
      if (kind === 'written') written += one.append.events.length;
      else skipped += one.append.events.length;
    }
    pace.done({ written: written - progress.written, bytesRead: range.last.bytesRead });
    progress = {
      bytesRead: range.last.bytesRead,
      bytesTotal,
      lines: line,
      written,
      skipped,
      eventsPerSecond: pace.eventsPerSecond(),
      secondsLeft: bytesTotal === 0 ? null : pace.secondsLeft(bytesTotal),
    };
    options.onProgress?.(progress);
  }

  let underWay: Promise<void> = Promise.resolve();
  try {
    for await (const range of rangesOf(placed())) {
      await underWay;
      if (signal?.aborted) break;
      underWay = settle(range);
      underWay.catch(() => {}); // awaited with the next range
    }
    await underWay;
  } catch (cause) {
    await underWay.catch(() => {});
    throw failed(lines, cause, lines === 0 ? 'before its first line' : `at line ${lines}`);
  }
  return { ...progress, lines };
}

interface Settled {
  readonly kind: AppendVerdict['kind'];
  readonly placed: PlacedAppend;
  readonly error?: Error;
}

/** Sends a range, unless all of it is already in the log, and records that it is imported. */
async function settleRange({ db, log }: ImportOptions, range: ImportRange): Promise<readonly Settled[]> {
  const { appends, digest, last } = range;
  if (await isImported(db, digest, last.append.idempotencyKey))
    return appends.map((placed) => ({ kind: 'duplicate', placed }));
  const verdicts = await log.appendInOrder(appends.map(({ append }) => append));
  // Only after the appends are committed: a recorded range must be in the log.
  if (verdicts.every(({ kind }) => kind !== 'refused')) await recordImported(db, digest);
  return verdicts.map((verdict, index) => ({ ...verdict, placed: appends[index] as PlacedAppend })); // one verdict for each
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (cause) {
    throw new RefoldError('IMPORT_FAILED', `There is no file '${file}' to import.`, { file }, { cause });
  }
}

async function* linesOf(
  file: string,
  signal: AbortSignal | undefined,
  onBytes: (bytes: number) => void,
): AsyncIterable<ImportLine> {
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      onBytes(bytes);
      done(null, chunk);
    },
  });
  const raw = createReadStream(file);
  raw.on('error', (error) => counted.destroy(error));
  const plain = file.endsWith('.gz') ? raw.pipe(counted).pipe(createGunzip()) : raw.pipe(counted);
  counted.on('error', (error) => plain.destroy(error));
  const reader = createInterface({ input: plain, crlfDelay: Number.POSITIVE_INFINITY });
  // On a pipe, the next line may take long to come.
  const leave = () => reader.close();
  signal?.addEventListener('abort', leave);
  let number = 0;
  try {
    for await (const text of reader) {
      number++;
      if (text.trim() !== '') yield { text, number };
    }
    if (plain.errored) throw plain.errored;
  } finally {
    signal?.removeEventListener('abort', leave);
    raw.destroy();
  }
}

interface Failure {
  readonly definition: Import;
  readonly file: string;
  readonly line: number;
  /** The place in the file, in words. */
  readonly place: string;
  readonly cause: unknown;
}

function importFailed({ definition, file, line, place, cause }: Failure): RefoldError {
  const reason = reasonOf(cause).replace(/[.!?]?$/, (end) => end || '.');
  return new RefoldError(
    'IMPORT_FAILED',
    `Import '${definition.name}' of '${file}' failed ${place}: ${reason} What was written stays; run the import again when the cause is fixed.`,
    { file, line },
    { cause },
  );
}
