import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type ArgDef, type ArgsDef, type CommandDef, runCommand, showUsage } from 'citty';
import { importWithGraphql } from '../config/graphql-package.ts';
import { RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';
import { resolved } from './shared/command-tree.ts';

/**
 * Runs the command that the arguments name. Unknown arguments are refused: a misspelt option would otherwise be ignored.
 *
 * @throws RefoldError `INVALID_CONFIG`, and what the command throws.
 */
export async function runCommandLine(main: CommandDef, given: readonly string[]): Promise<void> {
  const named = await namedCommand({ command: main, parent: undefined, path: 'refold', rest: [...given] });
  const { command, parent, path, rest } = named;
  if (rest.some((argument) => argument === '--help' || argument === '-h')) return showUsage(command, parent);
  if (command === main && (rest[0] === '--version' || rest[0] === '-v')) return console.log(version());
  if (command.subCommands && rest.length === 0) {
    await showUsage(command, parent);
    process.exitCode = 1;
    return;
  }
  checkArguments(path, ((await resolved(command.args)) ?? {}) as ArgsDef, rest); // citty's own name for the declared arguments
  await runCommand(command, { rawArgs: rest });
}

interface Named {
  readonly command: CommandDef;
  readonly parent: CommandDef | undefined;
  /** `refold import` */
  readonly path: string;
  /** The arguments after the command's name. */
  readonly rest: string[];
}

async function namedCommand(named: Named): Promise<Named> {
  const { command, path, rest } = named;
  const subCommands = await resolved(command.subCommands);
  const [name, ...others] = rest;
  if (!subCommands || name === undefined || name.startsWith('-')) return named;
  const known = Object.keys(subCommands);
  if (!known.includes(name)) throw refused(path, `has no command '${name}'.${closest(name, known)}`);
  const next = (await importWithGraphql(async () => resolved(subCommands[name]))) as CommandDef; // a known command
  return namedCommand({ command: next, parent: command, path: `${path} ${name}`, rest: others });
}

function checkArguments(path: string, declared: ArgsDef, given: string[]): void {
  const positionals = Object.entries(declared).flatMap(([name, { type, required }]) =>
    type === 'positional' ? [{ name, required: required ?? true }] : [],
  );
  const options = Object.fromEntries(
    Object.entries(declared).flatMap(([name, definition]) =>
      definition.type === 'positional' ? [] : namesOf(name, definition).map((one) => [one, optionOf(definition)]),
    ),
  );
  const { tokens } = parseArgs({ args: given, options, strict: false, allowPositionals: true, tokens: true });
  const found: string[] = [];
  const named = new Set<string>();
  for (const token of tokens) {
    if (token.kind === 'positional') found.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    named.add(name);
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (!option) {
      const names = Object.keys(options);
      throw refused(
        path,
        `has no option '${rawName}'.${closest(
          rawName,
          [...names, 'help'].map((known) => `--${known}`),
        )}`,
      );
    }
    if (option.type === 'boolean' && value !== undefined) throw refused(path, `takes no value for '${rawName}'.`);
    if (option.type === 'string' && (value === undefined || value === ''))
      throw refused(path, `needs a value for '${rawName}'.`);
    const choices = choicesOf(declared, name);
    if (choices && !choices.includes(value ?? ''))
      throw refused(path, `takes ${choices.map((one) => `'${one}'`).join(', ')} for '${rawName}', found '${value}'.`);
  }
  const usage = [
    path,
    ...positionals.map(({ name, required }) => (required ? name.toUpperCase() : `[${name.toUpperCase()}]`)),
  ].join(' ');
  const missing = positionals[found.length];
  if (missing?.required) throw refused(path, `lacks ${missing.name.toUpperCase()}: ${usage}.`);
  for (const [name, definition] of Object.entries(declared)) {
    if (definition.type === 'positional' || definition.required !== true || named.has(name)) continue;
    const hint = 'valueHint' in definition && definition.valueHint ? ` ${definition.valueHint}` : '';
    throw refused(path, `lacks --${name}${hint}.`);
  }
  const extra = found[positionals.length];
  if (extra !== undefined) throw refused(path, `does not know what to do with '${extra}': ${usage}.`);
}

/** A flag that is on by default can be switched off: `--no-install`. */
function namesOf(name: string, { type, default: value }: ArgDef): readonly string[] {
  return type === 'boolean' && value === true ? [name, `no-${name}`] : [name];
}

function optionOf(definition: ArgDef) {
  return {
    type: definition.type === 'boolean' ? ('boolean' as const) : ('string' as const),
    ...('alias' in definition && typeof definition.alias === 'string' ? { short: definition.alias } : {}),
  };
}

function choicesOf(declared: ArgsDef, name: string): readonly string[] | undefined {
  const definition = declared[name];
  return definition && 'options' in definition ? definition.options : undefined;
}

function refused(path: string, problem: string): RefoldError<'INVALID_CONFIG'> {
  return new RefoldError('INVALID_CONFIG', `'${path}' ${problem} See '${path} --help'.`);
}

/** Reads the version of the package. `package.json` is two folders above in the repository and in the package. */
function version(): string {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}
