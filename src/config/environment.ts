import { readFileSync } from 'node:fs';
import { closest } from '../events/closest.ts';
import { allOptions } from './all-options.ts';
import { checkDatabaseUrl } from './database-options.ts';
import { type Config, type ConfigOptions, defineConfig } from './define-config.ts';
import { invalidConfig, type NumberRule } from './option-checks.ts';
import type { NamedOption, OptionRule } from './option-rules.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** An option that the environment sets. */
export interface EnvironmentOption extends NamedOption {
  /** The variable that sets it: its own, the same with `_FILE`, or another name of it, such as `DATABASE_URL`. */
  readonly source: string;
  readonly value: unknown;
}

/**
 * The options that the environment sets: each by its variable, such as `REFOLD_RUNTIME_OWNERSHIP`, or by a file that `REFOLD_RUNTIME_OWNERSHIP_FILE`
 * names. An empty variable sets nothing.
 *
 * @throws RefoldError `INVALID_CONFIG` for an unknown variable of Refold, a wrong value, or two variables that set one option
 */
export function environmentOptions(env: Environment): EnvironmentOption[] {
  refuseUnknownVariables(env);
  const options = allOptions.flatMap((option) => {
    const found = sourceOf(option, env);
    return found ? [{ ...option, source: found.source, value: parsed(option.rule, found) }] : [];
  });
  // The options of a group that is switched off do not switch it on.
  const off = options.filter(({ rule, value }) => isGroup(rule) && value === false);
  return options.filter((one) => !off.some(({ variable }) => one.variable.startsWith(`${variable}_`)));
}

function isGroup(rule: OptionRule): boolean {
  return 'kind' in rule && rule.kind === 'group';
}

/** The configuration with what the environment sets, checked as a whole. @throws RefoldError like {@link environmentOptions} */
export function underEnvironment(config: Config, env: Environment): Config {
  const found = environmentOptions(env);
  if (found.length === 0) return config;
  const options: Record<string, unknown> = { ...config.given };
  // A group's own switch comes before its options.
  for (const { path, value, rule } of found) set(options, path, isGroup(rule) && value === true ? groupOn : value);
  return defineConfig(options as ConfigOptions); // checked there
}

/** Switches a group on, with the options that the configuration has for it. */
const groupOn = Symbol('on');

function set(options: Record<string, unknown>, [name = '', ...below]: readonly string[], value: unknown): void {
  const before = options[name];
  const group = { ...(typeof before === 'object' ? before : {}) } as Record<string, unknown>; // any object can be read by property names
  if (below.length > 0) set(group, below, value);
  options[name] = below.length > 0 || value === groupOn ? group : value;
}

interface Source {
  readonly source: string;
  readonly text: string;
}

/** The variable of the option's own name comes before another one, which platforms may set: `PORT`. */
function sourceOf({ variable, rule }: NamedOption, env: Environment): Source | undefined {
  const names = [variable, ...('also' in rule && rule.also !== undefined ? [rule.also] : [])];
  for (const name of names) {
    const [own, file] = [env[name], env[`${name}_FILE`]];
    if (own && file) throw invalidConfig(`${name} and ${name}_FILE set the same option. Set one of them.`);
    if (own && !isServiceLink(name, own)) return { source: name, text: own };
    const text = file && contentOf(`${name}_FILE`, file);
    if (text) return { source: `${name}_FILE`, text };
  }
  return undefined;
}

/** Messages name the file, never its content, which may be a secret. */
function contentOf(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    throw invalidConfig(`${variable} names '${file}', which can't be read${code}.`);
  }
}

function parsed(rule: OptionRule, { source, text }: Source): unknown {
  if (!('kind' in rule)) return numberOf(source, text, rule, 'whole number');
  switch (rule.kind) {
    case 'share':
      return numberOf(source, text, rule, 'number');
    case 'text':
      return text;
    case 'url':
      checkDatabaseUrl(source, text);
      return text;
    case 'choice':
      if (rule.of.includes(text)) return text;
      throw invalidConfig(`${source} is ${rule.of.join(', ')}; found '${text.slice(0, 40)}'.${closest(text, rule.of)}`);
    case 'boolean':
    case 'group':
      return booleanOf(source, text);
    case 'list':
      return text.split(',').map((one) => one.trim());
    case 'json':
      try {
        return JSON.parse(text);
      } catch {
        throw invalidConfig(`${source} is not JSON.`);
      }
  }
}

function numberOf(
  source: string,
  text: string,
  { min, max }: Pick<NumberRule, 'min' | 'max'>,
  what: 'number' | 'whole number',
): number {
  const value = (what === 'number' ? /^\d+(\.\d+)?$/ : /^\d+$/).test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw invalidConfig(`${source} is a ${what} from ${min} to ${max}, found '${text.slice(0, 40)}'.`);
}

function booleanOf(source: string, text: string): boolean {
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0') return false;
  throw invalidConfig(`${source} is true or false, found '${text.slice(0, 40)}'.`);
}

const sections = /^REFOLD_(DATABASE|READ_STORES|STORE|RUNTIME|GATEWAY|DEVELOPMENT)/;

/** A misspelt variable would otherwise be ignored. */
function refuseUnknownVariables(env: Environment): void {
  const known = allOptions.flatMap(({ variable }) => [variable, `${variable}_FILE`]);
  for (const [name, value] of Object.entries(env)) {
    if (!sections.test(name) || known.includes(name) || value === undefined || isServiceLink(name, value)) continue;
    throw invalidConfig(
      `The environment has an unknown option ${name}.${closest(name, known)} docs/options.md lists all.`,
    );
  }
}

/** Kubernetes sets such variables for a service that is named refold-gateway: `REFOLD_GATEWAY_PORT=tcp://10.0.0.11:4000`. */
function isServiceLink(name: string, value: string): boolean {
  return (
    /_SERVICE_(HOST|PORT)/.test(name) || /_PORT_\d+_(TCP|UDP|SCTP)/.test(name) || /^(tcp|udp|sctp):\/\//.test(value)
  );
}
