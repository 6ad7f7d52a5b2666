import { readFile, writeFile } from 'node:fs/promises';

/** Writes a page of docs/; with `--check`, fails if the file differs from `text`. `sources` says what it is generated from. */
export async function writeGenerated(file: string, text: string, sources: string): Promise<void> {
  if (!process.argv.includes('--check')) return writeFile(file, text);
  if ((await readFile(file, 'utf8').catch(() => '')) === text) return;
  console.error(`${file} differs from ${sources}. Run: npm run codegen`);
  process.exitCode = 1;
}

/** A table in Markdown. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
