import type { ArgDef, ArgsDef, CommandDef } from 'citty';

/** A command with everything that its definition says, for what is generated from the table of commands. */
export interface CommandNode {
  /** The words after `refold`, such as `['dead-letters', 'list']`. */
  readonly path: readonly string[];
  readonly description: string;
  readonly arguments: readonly ArgumentNode[];
  readonly options: readonly OptionNode[];
  readonly commands: readonly CommandNode[];
}

/** What is given by its place, such as `VERSION`. */
export interface ArgumentNode {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
}

export interface OptionNode {
  /** Such as `json`, on the command line `--json`. */
  readonly name: string;
  /** One letter, on the command line `-j`. */
  readonly alias: string | undefined;
  readonly description: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
  /** What its value looks like, such as `POSITION`. */
  readonly valueHint: string | undefined;
  readonly required: boolean;
  readonly default: string | boolean | undefined;
  /** What `--no-…` of a flag that is on does. */
  readonly negativeDescription: string | undefined;
}

/** Loads a command with all commands below it. */
export async function commandTree(command: CommandDef, path: readonly string[] = []): Promise<CommandNode> {
  const meta = await resolved(command.meta);
  const args = ((await resolved(command.args)) ?? {}) as ArgsDef; // citty's own name for the declared arguments
  const below = Object.entries((await resolved(command.subCommands)) ?? {});
  const commands: CommandNode[] = [];
  for (const [name, definition] of below)
    commands.push(await commandTree((await resolved(definition)) as CommandDef, [...path, name])); // a command of the table
  const { description = '' } = meta ?? {};
  return { path, description, arguments: argumentsOf(args), options: optionsOf(args), commands };
}

/** The command and all commands below it. */
export function everyCommand(command: CommandNode): CommandNode[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

function argumentsOf(args: ArgsDef): ArgumentNode[] {
  return Object.entries(args).flatMap(([name, { type, description = '', required = true }]) =>
    type === 'positional' ? [{ name, description, required }] : [],
  );
}

function optionsOf(args: ArgsDef): OptionNode[] {
  return Object.entries(args).flatMap(([name, definition]) =>
    definition.type === 'positional' ? [] : [optionOf(name, definition)],
  );
}

function optionOf(name: string, definition: ArgDef): OptionNode {
  return {
    name,
    alias: 'alias' in definition && typeof definition.alias === 'string' ? definition.alias : undefined,
    description: definition.description ?? '',
    takesValue: definition.type !== 'boolean',
    choices: 'options' in definition ? (definition.options ?? []) : [],
    valueHint: 'valueHint' in definition ? definition.valueHint : undefined,
    required: definition.required === true,
    default: 'default' in definition ? definition.default : undefined,
    negativeDescription: 'negativeDescription' in definition ? definition.negativeDescription : undefined,
  };
}

type Resolvable<T> = T | Promise<T> | (() => T) | (() => Promise<T>);

/** Loads what a definition of citty may leave to a function. */
export function resolved<T>(value: Resolvable<T> | undefined): T | Promise<T> | undefined {
  return typeof value === 'function' ? (value as () => T | Promise<T>)() : value; // commands and their parts are objects
}
