/**
 * `npm run release:version`: turns the changesets into the next version. Writes it wherever it is written, and gives the changes in
 * CHANGELOG.md its heading. Changes nothing if there are no changesets.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const before = versionOf('package.json');
execFileSync('changeset', ['version'], { stdio: 'inherit' });
const version = versionOf('package.json');
if (version !== before) {
  // The package of `npm create refold` runs the Refold of its own version.
  replaceIn('create-refold/package.json', [
    [`"version": "${before}"`, `"version": "${version}"`],
    [`"refold": "${before}"`, `"refold": "${version}"`],
  ]);
  // The first version in the lockfile is that of the project, the second one that of its root package.
  replaceIn('package-lock.json', [
    [`"version": "${before}"`, `"version": "${version}"`],
    [`"version": "${before}"`, `"version": "${version}"`],
  ]);
  replaceIn('CHANGELOG.md', [['## Unreleased\n', `## Unreleased\n\n## ${version}\n`]]);
}

function versionOf(file: string): string {
  const { version: found }: { version: string } = JSON.parse(readFileSync(file, 'utf8'));
  return found;
}

function replaceIn(file: string, replacements: readonly (readonly [string, string])[]): void {
  let text = readFileSync(file, 'utf8');
  for (const [from, to] of replacements) {
    if (!text.includes(from)) throw new Error(`Expected ${JSON.stringify(from)} in ${file}.`);
    text = text.replace(from, () => to);
  }
  writeFileSync(file, text);
}
