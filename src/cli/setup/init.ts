import { spawnSync } from 'node:child_process';
import { relative } from 'node:path';
import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { askFor, withDefaults } from './ask-for-project.ts';
import {
  createProject,
  type PackageManager,
  packageManagers,
  type Template,
  templates,
  wordsOf,
} from './create-project.ts';

export const init = defineCommand({
  meta: {
    name: 'init',
    description: 'Create a project. Asks for what is not given, unless --yes is set or there is no terminal.',
  },
  args: {
    folder: { type: 'positional', required: false, description: 'A new or empty folder' },
    yes: { type: 'boolean', alias: 'y', description: 'Ask nothing' },
    template: {
      type: 'enum',
      options: [...templates],
      description: `What to begin with. Default: ${templates[0]}`,
    },
    'package-manager': {
      type: 'enum',
      options: [...packageManagers],
      description: 'What installs the packages. Default: the one that runs this command, else npm',
    },
    install: {
      type: 'boolean',
      default: true,
      description: 'Install the packages',
      negativeDescription: 'Install nothing',
    },
    git: {
      type: 'boolean',
      default: true,
      description: 'Create a git repository',
      negativeDescription: 'Create no git repository',
    },
  },
  run: withErrorReporting(async ({ args }) => {
    const given = {
      folder: args.folder,
      template: args.template as Template | undefined, // an enum argument has one of its options
      packageManager: args['package-manager'] as PackageManager | undefined, // as above
    };
    const asks = !args.yes && process.stdin.isTTY === true;
    const project = asks ? await askFor(given, process) : withDefaults(given);
    createProject(project);
    const { folder, template, packageManager } = project;
    const place = relative(process.cwd(), folder);
    console.log(`Created '${template}' in ${place === '' ? 'this folder' : place}.`);
    if (args.git) createRepository(folder);
    if (args.install) installPackages(folder, packageManager);
    console.log(nextSteps({ place, template, packageManager, isInstalled: args.install }));
  }),
});

/** Does nothing if git is missing, or if the folder is in a repository already. */
function createRepository(folder: string): void {
  const inside = spawnSync('git', ['rev-parse', '--is-inside-work-tree'], { cwd: folder, stdio: 'ignore' });
  if (inside.error || inside.status === 0) return;
  const { status } = spawnSync('git', ['init', '--quiet'], { cwd: folder, stdio: 'inherit' });
  if (status === 0) console.log('Created a git repository.');
}

/** @throws RefoldError `INVALID_CONFIG` */
function installPackages(folder: string, packageManager: PackageManager): void {
  console.log(`Installing the packages with ${packageManager}…`);
  const { error, status } = spawnSync(packageManager, ['install'], {
    cwd: folder,
    stdio: 'inherit',
    shell: process.platform === 'win32', // package managers are scripts there
  });
  if (!error && status === 0) return;
  const reason = error ? error.message : `it ended with ${status}`;
  throw new RefoldError(
    'INVALID_CONFIG',
    `'${packageManager} install' failed: ${reason}. The files are written; install the packages in '${folder}' yourself.`,
  );
}

interface Outcome {
  readonly place: string;
  readonly template: Template;
  readonly packageManager: PackageManager;
  readonly isInstalled: boolean;
}

function nextSteps({ place, template, packageManager, isInstalled }: Outcome): string {
  const { run } = wordsOf(packageManager);
  return [
    '',
    'Next:',
    ...(place === '' ? [] : [`  cd ${place}`]),
    ...(isInstalled ? [] : [`  ${packageManager} install`]),
    ...(template === 'existing-postgres' ? ['  cp .env.example .env   # and set DATABASE_URL in it'] : []),
    `  ${run} dev            # GraphiQL is at http://127.0.0.1:4000/graphql`,
    `  ${run} test`,
  ].join('\n');
}
