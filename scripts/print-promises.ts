/** Writes docs/promises.md from the names of the tests in test/reference; with `--check`, fails if the file differs. */
import { readFile } from 'node:fs/promises';
import { writeGenerated } from './generated-page.ts';

const file = 'docs/promises.md';

/** The reference systems: the name of the test file, and how many promises each makes. */
const systems = [
  { title: 'Emmett: rebuilding read models', name: 'emmett-rebuilding', promises: 15 },
  { title: 'Emmett: consumers, projectors, reactors', name: 'emmett-consumers', promises: 14 },
  { title: 'postgresql-event-sourcing', name: 'postgresql-event-sourcing', promises: 13 },
  { title: 'The incremental, replayable projection in PostgreSQL', name: 'incremental-projections', promises: 18 },
  { title: 'waku: projections', name: 'waku', promises: 16 },
] as const;

/** A test, with the sentence above it that says what differs. */
const promise =
  /(?:^\/\*\*(?:\n \*)? In another way: (?<difference>(?:(?!\*\/)[\s\S])*?)(?:\n)? \*\/\n)?^test\((?<quote>['"])(?<number>\d+)\. (?<promise>.*?)\k<quote>, /gm;

const sections = await Promise.all(systems.map(section));
const text = `<!-- Generated from the names of the tests in test/reference by \`npm run codegen\`. -->

# What the reference systems promise

For everybody who compares Refold with other systems, or comes from one. Each row is a promise of such a system, in the
words of the test that proves it for Refold. The numbers are ours. *Difference* says how Refold keeps a promise in
another way, or what it lacks.

${sections.join('\n\n')}
`;

async function section({ title, name, promises }: (typeof systems)[number]): Promise<string> {
  const path = `test/reference/${name}.test.ts`;
  const rows = [...(await readFile(path, 'utf8')).matchAll(promise)].map(({ groups = {} }) => ({
    number: Number(groups.number),
    promise: groups.promise ?? '',
    difference: sentence((groups.difference ?? 'None.').replaceAll(/\s*\n \* /g, ' ')),
  }));
  const missing = Array.from({ length: promises }, (_, index) => index + 1).filter(
    (number) => rows.filter((row) => row.number === number).length !== 1,
  );
  if (missing.length > 0 || rows.length !== promises)
    throw new Error(
      `${path} needs one test for each of its ${promises} promises; see ${missing.join(', ') || `those above ${promises}`}.`,
    );
  const lines = rows
    .toSorted((a, b) => a.number - b.number)
    .map(({ number, promise, difference }) => `| ${number} | ${cell(promise)} | ${cell(difference)} |`);
  return `## ${title}

Tests: \`${path}\`

| | promise | difference |
| --- | --- | --- |
${lines.join('\n')}`;
}

function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function cell(content: string): string {
  return content.replaceAll('|', '\\|');
}

await writeGenerated(file, text, 'the names of the tests in test/reference');
