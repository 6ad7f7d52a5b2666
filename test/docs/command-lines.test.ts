import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { refold } from '../../src/cli/commands.ts';
import { type CommandNode, commandTree } from '../../src/cli/shared/command-tree.ts';

const root = await commandTree(refold);

/** Why a command line is not one of refold's; undefined if it is. */
function problemOf(line: string): string | undefined {
  const words = [...line.matchAll(/"[^"]*"|'[^']*'|[^\s|>&;]+|[|>&;]/g)].map(([word]) => word);
  const end = words.findIndex((word) => /^[|>&;#]/.test(word));
  const given = words.slice(1, end < 0 ? undefined : end);
  let command: CommandNode = root;
  while (command.commands.length > 0) {
    const next = command.commands.find(({ path }) => path.at(-1) === given[0]);
    if (!next) return `there is no command ${[...command.path, given[0]].join(' ')}`;
    command = next;
    given.shift();
  }
  const known = command.options.flatMap(({ name, alias }) => [`--${name}`, `--no-${name}`, `-${alias ?? '-help'}`]);
  const unknown = given
    .map((word) => word.replace(/=.*/, ''))
    .find((word) => word.startsWith('-') && !known.includes(word));
  return unknown === undefined ? undefined : `${command.path.join(' ')} has no option ${unknown}`;
}

test('an unknown command or option is found', () => {
  expect(problemOf('refold status --watch | less')).toBe(undefined);
  expect(problemOf('refold statsu')).toBe('there is no command statsu');
  expect(problemOf('refold dead-letters retry cart_summary@2 --watch')).toBe(
    'dead-letters retry has no option --watch',
  );
});

test('every command line of refold on a page is one that exists', () => {
  const pages = ['README.md', 'CONTRIBUTING.md', ...globSync('{docs,examples}/**/*.md')];
  const found = pages.flatMap((page) => {
    const blocks = [...readFileSync(page, 'utf8').matchAll(/```sh\n(.*?)```/gs)].map(([, code = '']) => code);
    const inline = [...readFileSync(page, 'utf8').matchAll(/`(refold [a-z][^`\n]*)`/g)].map(([, code = '']) => code);
    const lines = blocks.flatMap((code) =>
      [...code.matchAll(/^(?:[A-Z_]+=\S+ )*(refold .*)$/gm)].map(([, line = '']) => line),
    );
    // An omission, such as `refold rebuild … --cancel`.
    return [...lines, ...inline].filter((line) => !line.includes('…')).map((line) => ({ page, line }));
  });
  expect(found.length).toBeGreaterThan(150);
  const wrong = found.flatMap(({ page, line }) => {
    const problem = problemOf(line);
    return problem === undefined ? [] : [`${page}: ${line}: ${problem}`];
  });
  expect(wrong).toEqual([]);
});
