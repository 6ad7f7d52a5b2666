import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { refold } from '../../src/cli/commands.ts';
import { fishCompletion, zshCompletion } from '../../src/cli/setup/completion-scripts.ts';
import { type CommandNode, commandTree, everyCommand } from '../../src/cli/shared/command-tree.ts';
import { runCliHere } from '../support/cli-here.ts';

let tree: CommandNode;

beforeAll(async () => {
  tree = await commandTree(refold);
});

/** What bash offers for a line whose last word is being typed. */
async function offered(...words: string[]): Promise<string[]> {
  const { stdout: script } = await runCliHere(['completion', 'bash']);
  const line = words.map((word) => `'${word}'`).join(' ');
  const ask = `${script}\nCOMP_WORDS=(refold ${line}); COMP_CWORD=${words.length}; _refold; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', ask]);
  return stdout.split('\n').filter((word) => word !== '');
}

test('bash offers commands, commands below them, options and their choices', async () => {
  expect(await offered('re')).toEqual(['resume', 'rebuild', 'reactor', 'retire']);
  expect(await offered('events', '')).toEqual(['list', 'show', 'tail']);
  expect(await offered('events', 'tail', '--f')).toEqual(['--follow']);
  expect(await offered('start', '--role', '')).toEqual(expect.arrayContaining(['gateway', 'worker', 'all']));
  expect(await offered('start', '--role', 'w')).toEqual(['worker']);
  expect(await offered('--v')).toEqual(['--version']);
  // What follows an option that takes any value, and arguments, is left to file names.
  expect(await offered('check', '--schema', '')).toEqual([]);
  expect(await offered('import', 'online-retail', '')).toEqual([]);
  expect(await offered('events', 'list', 'account/a', '--t')).toEqual(['--type', '--to']);
});

test('bash knows every command and every option', async () => {
  for (const { path, commands, options } of everyCommand(tree)) {
    if (commands.length > 0) expect(await offered(...path, '')).toEqual(commands.map((one) => one.path.at(-1)));
    const flags = await offered(...path, '--');
    expect(flags.filter((flag) => flag !== '--version')).toEqual([...options.map(({ name }) => `--${name}`), '--help']);
  }
}, 300_000);

test('the scripts for zsh and fish have every command and every option, with its description', () => {
  const [zsh, fish] = [zshCompletion(tree), fishCompletion(tree)];
  for (const { path, description, options } of everyCommand(tree)) {
    const place = path.map((word) => ` ${word}`).join('');
    if (path.length > 0) {
      expect(zsh).toContain(`'${path.at(-1)}:${description.replaceAll("'", `'\\''`)}'`);
      expect(fish).toContain(`-a ${path.at(-1)} -d '${description.replaceAll("'", "\\'")}'`);
    }
    for (const { name } of options) {
      expect(zsh).toContain(`'--${name}:`);
      expect(fish).toContain(`complete -c refold -n '__refold_at \\'${place}\\'' -l ${name} `);
    }
  }
});

test('a shell without a completion is named', async () => {
  expect(await runCliHere(['completion', 'fisch'])).toMatchObject({
    code: 1,
    stderr:
      "refold: 'refold completion' has no command 'fisch'. Did you mean 'fish'? See 'refold completion --help'.\n",
  });
});
