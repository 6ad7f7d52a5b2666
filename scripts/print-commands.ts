/** Writes docs/cli.md from the declarations of the commands; with `--check`, fails if the file differs. */
import { apiArguments } from '../src/cli/api/with-api.ts';
import { refold } from '../src/cli/commands.ts';
import { type ArgumentNode, type CommandNode, commandTree, type OptionNode } from '../src/cli/shared/command-tree.ts';
import { configArgument } from '../src/cli/shared/load-config.ts';
import { jsonArgument, reasonArgument } from '../src/cli/shared/version-argument.ts';
import { markdownTable, writeGenerated } from './generated-page.ts';

/** The pages that explain a command. */
const pages: Readonly<Record<string, string>> = {
  init: 'five-minutes.md#other-projects',
  dev: 'developing.md#what-an-edit-does',
  start: 'operating.md#what-a-process-maintains',
  migrate: 'upgrading.md#migrations',
  status: 'operating.md#status',
  events: 'operating.md#events-of-the-log',
  activate: 'deploying.md#when-a-version-takes-over',
  canary: 'evolution.md#a-canary',
  shadow: 'evolution.md#shadow-compare',
  pause: 'operating.md#pausing-a-version',
  rebuild: 'rebuilding.md',
  snapshot: 'rebuilding.md#snapshots',
  'dead-letters': 'refused-rows.md',
  reactor: 'reactors.md#operating-them',
  verify: 'operating.md#verifying-rows',
  changes: 'evolution.md#what-changes-for-clients',
  usage: 'evolution.md#what-clients-ask-for',
  diff: 'operating.md#verifying-rows',
  check: 'deploying.md#before-a-deployment',
  doctor: 'operating.md#doctor',
  schema: 'clients.md#typed-operations',
  import: 'import.md',
};

/** Options that the top of the page describes for all commands, as their commands declare them. */
const common: readonly string[] = ['config', 'remote', 'json', 'reason'];
const described: ReadonlySet<string> = new Set([
  configArgument.config.description,
  apiArguments.remote.description,
  jsonArgument.json.description,
  reasonArgument.reason.description,
]);

const { commands } = await commandTree(refold);

const text = `<!-- Generated from src/cli/ by \`npm run codegen\`. -->

# Command line

For developers and operators: every command of \`refold\` with its arguments and options. \`refold COMMAND --help\` prints
the same.

All commands of operators use the [admin API](admin.md): that of a running gateway with \`--remote\`, else their own, over the
application's file and database. So what they do, say and print is the same. These options mean the same everywhere:

${markdownTable(
  ['option', 'meaning'],
  [
    ['`-c`, `--config FILE`', "the application's file; default: `refold.config.ts` in this folder, or `.js`, `.mjs`"],
    ['`--remote URL`', 'uses a running gateway instead; see [below](#without-the-database)'],
    [
      '`--json`',
      'prints JSON for programs: the response of the [admin API](admin-schema.graphql); positions are texts',
    ],
    ['`-r`, `--reason TEXT`', 'why, for the audit log'],
    ['`-h`, `--help`', 'shows the arguments and options of a command'],
  ],
)}

[Environment variables](options.md) set the options of the application, such as \`DATABASE_URL\`. A file \`.env\` in the
folder sets variables that are not set. Without a database URL, commands use the embedded server of the folder (\`start\`
only with \`--embedded\`), and migrate it.

## Without the database

Operators need neither the database nor the application's files. With \`--remote\`, a command uses the
[admin API](admin.md) of a running gateway, with the rights of a token:

\`\`\`sh
export REFOLD_REMOTE_TOKEN_FILE=~/.refold-token          # or REFOLD_REMOTE_TOKEN=…
refold status --remote https://shop.example.com
refold activate cart_summary@2 --remote https://shop.example.com --reason 'checked by the finance team'
\`\`\`

- \`URL\` is that of the gateway, or of its admin page. The address that \`refold dev\` prints also has the token.
- Without \`--reason\`, a command that changes something shows what it will do and asks why. If nobody can be asked, it does
  nothing. The audit log names the token and the reason. With the database, the reason is then \`by hand\`.
- The rights of the token apply: \`verify\` and \`diff\` need the right \`verify\`, payloads the right \`data\`.
- Versions of all [read stores](read-stores.md) are shown and changed.

## Names

An unknown command, option or choice is refused, and the message names what was probably meant.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | done; nothing was found that needs you |
| 1 | refused or failed, with the reason on standard error. Or found: a problem (\`check\`, \`doctor\`), a difference (\`verify\`, \`diff\`, \`shadow\`, \`schema --check\`), a breaking change (\`changes\`), a retry of dead letters that repaired nothing. Or no command was named |
| 130, 143 | ended by SIGINT (Ctrl-C) or SIGTERM before it was done. \`start\` and \`dev\` stop in order at the first signal and end with 0; a second one ends them at once with 130 |
| 141 | the reader of the output has closed it, as \`head\` does |

## Shell completion

\`\`\`sh
eval "$(refold completion bash)"     # in ~/.bashrc
eval "$(refold completion zsh)"      # in ~/.zshrc, after compinit
refold completion fish | source      # in ~/.config/fish/config.fish
\`\`\`

The scripts are generated from the commands: names, options and their choices.

${commands.map((command) => section(command, '##')).join('\n\n')}
`;

function section(command: CommandNode, level: string): string {
  const name = command.path.join(' ');
  const page = pages[name];
  const own = command.options.filter(({ name, description }) => !common.includes(name) || !described.has(description));
  const rows = [...command.arguments.map(argumentRow), ...own.map(optionRow)];
  return [
    `${level} refold ${name}`,
    plain(command.description) + (page === undefined ? '' : ` More: [${page.replace(/\.md.*/, '')}](${page}).`),
    ...(command.commands.length > 0 ? [] : [`\`\`\`text\n${usage(command)}\n\`\`\``]),
    ...(rows.length > 0 ? [markdownTable(['argument', 'meaning'], rows)] : []),
    ...command.commands.map((below) => section(below, `${level}#`)),
  ].join('\n\n');
}

function usage({ path, arguments: given, options }: CommandNode): string {
  const required = options.filter((option) => option.required).map((option) => flagOf(option));
  const shared = common.filter((name) => options.some((option) => option.name === name));
  const others = options.length > required.length ? ['[OPTIONS]'] : [];
  const places = given.map(({ name, required }) => (required ? name.toUpperCase() : `[${name.toUpperCase()}]`));
  const also = shared.length > 0 ? `   # also ${shared.map((name) => `--${name}`).join(', ')}` : '';
  return ['refold', ...path, ...places, ...required, ...others].join(' ') + also;
}

function argumentRow({ name, description, required }: ArgumentNode): readonly string[] {
  return [`\`${name.toUpperCase()}\`${required ? '' : ', optional'}`, plain(description)];
}

function optionRow(option: OptionNode): readonly string[] {
  const { alias, default: standard, required, takesValue } = option;
  const description = standard === true ? (option.negativeDescription ?? '') : option.description;
  const ending = required ? '. Required' : takesValue && standard !== undefined ? `. Default: ${standard}` : '';
  return [`${alias === undefined ? '' : `\`-${alias}\`, `}\`${flagOf(option)}\``, plain(description) + ending];
}

function flagOf({ name, takesValue, choices, valueHint, default: standard }: OptionNode): string {
  if (!takesValue) return standard === true ? `--no-${name}` : `--${name}`;
  return `--${name} ${choices.length > 0 ? choices.join('|') : (valueHint ?? 'TEXT')}`;
}

/** A description as a cell of a table. */
function plain(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}

await writeGenerated('docs/cli.md', text, 'the declarations of the commands');
