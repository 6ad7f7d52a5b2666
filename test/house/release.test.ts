import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const path = [join(root, 'node_modules/.bin'), dirname(process.execPath), process.env.PATH].join(delimiter);

/** A repository with what a release reads and writes. */
function repository(): string {
  const folder = mkdtempSync(join(tmpdir(), 'refold-release-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['.changeset', 'CHANGELOG.md', 'create-refold', 'package-lock.json', 'package.json', 'scripts'])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const git = (...parameters: readonly string[]) => execFileSync('git', parameters, { cwd: folder, stdio: 'ignore' });
  const person = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
  git('init', '--initial-branch=main');
  git('add', '--all');
  git(...person, 'commit', '-m', 'All');
  return folder;
}

const versionOf = (file: string) => JSON.parse(readFileSync(file, 'utf8')).version as string; // a package has one

test('a changeset becomes the next version of both packages, and the changes get its heading', () => {
  const folder = repository();
  const before = versionOf(join(folder, 'package.json'));
  const release = () =>
    execFileSync(process.execPath, ['scripts/release-version.ts'], {
      cwd: folder,
      env: { ...process.env, PATH: path },
    });
  for (const file of readdirSync(join(folder, '.changeset')))
    if (!['README.md', 'config.json'].includes(file)) rmSync(join(folder, '.changeset', file));
  release();
  expect(versionOf(join(folder, 'package.json'))).toBe(before);

  writeFileSync(join(folder, '.changeset/large.md'), '---\n"refold": minor\n---\n\nReads minds.\n');
  release();
  const version = versionOf(join(folder, 'package.json'));
  const [major, minor] = before.split('.').map(Number);
  expect(version).toBe(`${major}.${Number(minor) + 1}.0`);
  const creator = JSON.parse(readFileSync(join(folder, 'create-refold/package.json'), 'utf8'));
  expect([creator.version, creator.dependencies.refold]).toEqual([version, version]);
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  expect([lock.version, lock.packages[''].version]).toEqual([version, version]);
  expect(readFileSync(join(folder, 'CHANGELOG.md'), 'utf8')).toContain(`## Unreleased\n\n## ${version}\n`);
  expect(readdirSync(join(folder, '.changeset')).toSorted()).toEqual(['README.md', 'config.json']);
  const changed = execFileSync('git', ['diff', '--name-only'], { cwd: folder, encoding: 'utf8' });
  expect(changed.trim().split('\n')).toEqual([
    'CHANGELOG.md',
    'create-refold/package.json',
    'package-lock.json',
    'package.json',
  ]);
});

/** Publishes with an `npm` that only writes down how it is called. `view` finds what is published. */
function publish(isPublished: boolean): readonly string[] {
  const folder = repository();
  const programs = join(folder, 'programs');
  const npm = join(folder, 'real-npm');
  symlinkSync(execFileSync('which', ['npm'], { encoding: 'utf8' }).trim(), npm);
  execFileSync('mkdir', [programs]);
  const view = isPublished ? 'echo 0.1.0' : 'echo "npm error code E404" >&2; exit 1';
  writeFileSync(
    join(programs, 'npm'),
    `#!/bin/sh\necho "$(basename "$PWD"): npm $@" >> ${folder}/called\ncase $1 in view) ${view};; pkg) exec ${npm} "$@";; esac\n`,
  );
  writeFileSync(join(programs, 'changeset'), `#!/bin/sh\necho "changeset $@" >> ${folder}/called\n`);
  for (const name of readdirSync(programs)) chmodSync(join(programs, name), 0o755);
  execFileSync(process.execPath, ['scripts/release-publish.ts'], {
    cwd: folder,
    env: {
      ...process.env,
      PATH: [programs, path].join(delimiter),
      GITHUB_SERVER_URL: 'https://git.example',
      GITHUB_REPOSITORY: 'ada/refold',
    },
  });
  for (const manifest of ['package.json', 'create-refold/package.json'])
    expect(JSON.parse(readFileSync(join(folder, manifest), 'utf8')).repository).toMatchObject({
      url: 'git+https://git.example/ada/refold.git',
    });
  const called = readFileSync(join(folder, 'called'), 'utf8').trim().split('\n');
  return called.filter((line) => !line.includes('npm pkg'));
}

test('a release publishes both packages, with the repository that npm compares, and the second one once', () => {
  const { name, version } = JSON.parse(readFileSync(join(root, 'create-refold/package.json'), 'utf8'));
  const view = expect.stringContaining(`npm view ${name}@${version} version`);
  expect(publish(false)).toEqual(['changeset publish', view, 'create-refold: npm publish --access public']);
  expect(publish(true)).toEqual(['changeset publish', view]);
});
