import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';

/** The lines of a gzipped file, opened when the first is requested: readline loses lines that it reads before that. */
export async function* linesOf(path: string): AsyncGenerator<string> {
  yield* createInterface({ input: createReadStream(path).pipe(createGunzip()), crlfDelay: Number.POSITIVE_INFINITY });
}

/** Only the first lines of a gzipped file. */
export async function firstLinesOf(path: string, count: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(path)) if (lines.push(line) === count) break;
  return lines;
}
