import { resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { type PackageManager, type Project, packageManagers, type Template, templates } from './create-project.ts';

const descriptions: Readonly<Record<Template, string>> = {
  shop: 'a command, two versions of a read model, a subscription',
  empty: 'the least that runs: a command and a read model',
  'existing-postgres': 'the same, on a PostgreSQL server that you have',
};

/** What the command's arguments say. */
export interface Given {
  readonly folder: string | undefined;
  readonly template: Template | undefined;
  readonly packageManager: PackageManager | undefined;
}

export interface Terminal {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
}

export function withDefaults({ folder = '.', template, packageManager }: Given): Project {
  return {
    folder: resolve(folder),
    template: template ?? templates[0],
    packageManager: packageManager ?? runningManager(),
  };
}

/** Asks for what is not given. An empty answer takes the default. */
export async function askFor(given: Given, { stdin, stdout }: Terminal): Promise<Project> {
  const lines = createInterface({ input: stdin, output: stdout });
  // Ctrl-C ends the program, as at any other time.
  lines.on('SIGINT', () => process.exit(130));
  const ask = async (question: string, fallback: string) =>
    (await lines.question(`${question} (${fallback}) `)).trim() || fallback;
  const choose = async <T extends string>(question: string, choices: readonly T[], fallback: T): Promise<T> => {
    for (;;) {
      const answer = await ask(question, fallback);
      const found = choices.find((one, index) => one === answer || String(index + 1) === answer);
      if (found !== undefined) return found;
      stdout.write(`Choose ${choices.join(', ')}, or 1 to ${choices.length}.\n`);
    }
  };
  try {
    const folder = given.folder ?? (await ask('Folder?', 'my-refold-app'));
    if (given.template === undefined)
      for (const [index, one] of templates.entries()) stdout.write(`  ${index + 1}  ${one}: ${descriptions[one]}\n`);
    const template = given.template ?? (await choose('Template?', templates, templates[0]));
    const packageManager =
      given.packageManager ?? (await choose('Package manager?', packageManagers, runningManager()));
    return { folder: resolve(folder), template, packageManager };
  } finally {
    lines.close();
  }
}

/** Package managers name themselves to the programs that they run: `pnpm/12.21.0 npm/? node/v24.21.0 linux x64`. */
function runningManager(): PackageManager {
  const name = process.env.npm_config_user_agent?.split('/')[0];
  return packageManagers.find((one) => one === name) ?? 'npm';
}
