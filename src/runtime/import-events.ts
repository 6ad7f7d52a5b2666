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

// Appends under way at a time: enough for the joined statements to be large, few enough for memory to stay flat.
const appendsUnderWay = 512;

/**
 * Streams a file (plain or gzip) into the log. Appends of one stream keep their order; appends of different streams run together.
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

  const lastOfStream = new Map<string, Promise<void>>();
  const underWay = new Set<Promise<void>>();
  const failures: unknown[] = [];

  function append(part: ImportedAppend, line: number): void {
    const stream = `${part.family.name}/${part.streamId}`;
    const work = (lastOfStream.get(stream) ?? Promise.resolve())
      .then(async () => {
        if (failures.length > 0) return;
        const result = await log.append(part);
        const count = part.events.length;
        report(result.duplicate ? { skipped: progress.skipped + count } : { written: progress.written + count });
      })
      .catch((cause: unknown) => void failures.push(importFailed(definition, file, line, cause)))
      .finally(() => {
        underWay.delete(work);
        if (lastOfStream.get(stream) === work) lastOfStream.delete(stream);
      });
    lastOfStream.set(stream, work);
    underWay.add(work);
  }

  const lines = linesOf(file, (bytesRead) => report({ bytesRead }));
  const counted = (async function* () {
    for await (const line of lines) {
      progress = { ...progress, lines: line.number };
      yield line;
    }
  })();
  try {
    for await (const part of definition.toAppends(counted)) {
      if (failures.length > 0 || signal?.aborted) break;
      append(part, progress.lines);
      if (underWay.size >= appendsUnderWay) await Promise.race(underWay);
    }
  } catch (cause) {
    failures.push(importFailed(definition, file, progress.lines, cause));
  }
  await Promise.all(underWay);
  if (failures.length > 0) throw failures[0];
  return progress;
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (cause) {
    throw new RefoldError('IMPORT_FAILED', `There is no file '${file}' to import.`, { file }, { cause });
  }
}

async function* linesOf(file: string, onBytes: (bytes: number) => void): AsyncIterable<ImportLine> {
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
  let number = 0;
  try {
    for await (const text of createInterface({ input: plain, crlfDelay: Number.POSITIVE_INFINITY })) {
      number++;
      if (text.trim() !== '') yield { text, number };
    }
    if (plain.errored) throw plain.errored;
  } finally {
    raw.destroy();
  }
}

function importFailed(definition: Import, file: string, line: number, cause: unknown): RefoldError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new RefoldError(
    'IMPORT_FAILED',
    `Import '${definition.name}' of '${file}' failed at or before line ${line}: ${reason} What was written stays; run the import again when the cause is mended.`,
    { file, line },
    { cause },
  );
}
