import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { RefoldError } from '../errors.ts';
import type { Import, ImportedAppend, ImportLine } from '../events/define-import.ts';
import type { EventLog } from '../store/event-log.ts';

export interface ImportProgress {
  readonly bytesRead: number;
  readonly bytesTotal: number;
  readonly lines: number;
  /** Events written by this run. */
  readonly written: number;
  /** Events that an earlier run had written. */
  readonly skipped: number;
}

// Enough for a statement to be worth its way and its commit, few enough for memory to stay flat.
const mostEventsAtOnce = 2_500;
const mostAppendsAtOnce = 500;

/**
 * Streams a file (plain or gzip) into the log, in the order of the file: what a later line builds on, of whatever stream,
 * comes before it. While one statement is under way, the lines of the next are read.
 *
 * @throws RefoldError `IMPORT_FAILED` naming the line; what was written stays, and a second run goes on.
 */
export async function importEvents(options: {
  readonly log: EventLog;
  readonly definition: Import;
  readonly file: string;
  readonly signal?: AbortSignal;
  onProgress?(progress: ImportProgress): void;
}): Promise<ImportProgress> {
  const { log, definition, file, signal } = options;
  const bytesTotal = await sizeOf(file);
  let progress: ImportProgress = { bytesRead: 0, bytesTotal, lines: 0, written: 0, skipped: 0 };
  const report = (change: Partial<ImportProgress>) => {
    progress = { ...progress, ...change };
    options.onProgress?.(progress);
  };
  const failed = (line: number, cause: unknown, place = `at or before line ${line}`) =>
    importFailed({ definition, file, line, place, cause });

  async function send(batch: readonly Sent[]): Promise<void> {
    const verdicts = await log
      .appendInOrder(batch.map(({ part }) => part))
      .catch((cause: unknown) => Promise.reject(failed(batch.at(-1)?.line ?? 0, cause)));
    for (const [index, verdict] of verdicts.entries()) {
      const { part, line } = batch[index] as Sent; // one verdict for each
      const count = part.events.length;
      if (verdict.kind === 'refused') throw failed(line, verdict.error);
      report(
        verdict.kind === 'duplicate' ? { skipped: progress.skipped + count } : { written: progress.written + count },
      );
    }
  }

  const lines = linesOf(file, signal, (bytesRead) => report({ bytesRead }));
  const counted = (async function* () {
    for await (const line of lines) {
      progress = { ...progress, lines: line.number };
      yield line;
    }
  })();
  let underWay: Promise<void> = Promise.resolve();
  let batch: Sent[] = [];
  let events = 0;
  try {
    for await (const part of definition.toAppends(counted)) {
      if (signal?.aborted) break;
      batch.push({ part, line: progress.lines });
      events += part.events.length;
      if (events < mostEventsAtOnce && batch.length < mostAppendsAtOnce) continue;
      await underWay;
      underWay = send(batch);
      underWay.catch(() => {}); // awaited with the next batch
      batch = [];
      events = 0;
    }
    await underWay;
    if (batch.length > 0 && !signal?.aborted) await send(batch);
  } catch (cause) {
    await underWay.catch(() => {});
    if (cause instanceof RefoldError && cause.code === 'IMPORT_FAILED') throw cause;
    throw failed(progress.lines, cause, progress.lines === 0 ? 'before its first line' : `at line ${progress.lines}`);
  }
  return progress;
}

/** An append and the line that it ends with. */
interface Sent {
  readonly part: ImportedAppend;
  readonly line: number;
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
  // The next line of a pipe may be long in coming.
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
  /** Where it is, in words. */
  readonly place: string;
  readonly cause: unknown;
}

function importFailed({ definition, file, line, place, cause }: Failure): RefoldError {
  const reason = (cause instanceof Error ? cause.message : String(cause)).replace(/[.!?]?$/, (end) => end || '.');
  return new RefoldError(
    'IMPORT_FAILED',
    `Import '${definition.name}' of '${file}' failed ${place}: ${reason} What was written stays; run the import again when the cause is mended.`,
    { file, line },
    { cause },
  );
}
