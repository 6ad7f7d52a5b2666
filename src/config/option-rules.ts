import { invalidConfig, type NumberRule, type ShareRule } from './option-checks.ts';

/**
 * What an option takes: the source of its check, of its environment variable, and of its row in docs/options.md. `also` is another variable of it,
 * beside the one that follows from its name.
 */
export type OptionRule =
  | NumberRule
  | ShareRule
  | { readonly kind: 'boolean' }
  | { readonly kind: 'text'; readonly also?: string }
  /** The URL of a database. A secret: it may hold a password. */
  | { readonly kind: 'url'; readonly also?: string }
  | { readonly kind: 'choice'; readonly of: readonly string[] }
  /** Texts, in the environment separated by commas. */
  | { readonly kind: 'list' }
  /** In the environment as JSON. */
  | { readonly kind: 'json' }
  /** An object of further options. `switch`: false switches it off, and true means its defaults. */
  | { readonly kind: 'group'; readonly of: OptionTable; readonly switch?: true };

export type OptionTable = Readonly<Record<string, OptionRule>>;

/** One option, at its place in the configuration. */
export interface NamedOption {
  /** Such as `['runtime', 'polling', 'min']`. */
  readonly path: readonly string[];
  readonly rule: OptionRule;
  /** Such as `REFOLD_RUNTIME_POLLING_MIN`. */
  readonly variable: string;
}

/** All options of a table, with those of groups. A group itself is one only if it can be switched. */
export function optionsOf(table: OptionTable, above: readonly string[] = []): NamedOption[] {
  return Object.entries(table).flatMap(([name, rule]) => {
    const path = [...above, name];
    const option = { path, rule, variable: variableOf(path) };
    if (!('kind' in rule) || rule.kind !== 'group') return [option];
    return [...(rule.switch ? [option] : []), ...optionsOf(rule.of, path)];
  });
}

function variableOf(path: readonly string[]): string {
  return ['refold', ...path].map((part) => part.replace(/[A-Z]/g, '_$&').toUpperCase()).join('_');
}

/**
 * Refuses values of another kind than the options of a table take, before anything uses them. Bounds, choices and what is in JSON have checks of
 * their own. @throws RefoldError `INVALID_CONFIG`
 */
export function checkKinds(table: OptionTable, given: object, above: readonly string[] = []): void {
  for (const [name, rule] of Object.entries(table)) {
    const value: unknown = (given as Record<string, unknown>)[name]; // any object can be read by property names
    if (value === undefined) continue;
    const path = [...above, name];
    const expected = 'kind' in rule ? expectedOf(rule, value) : value === null ? 'a number' : undefined;
    if (expected !== undefined)
      throw invalidConfig(
        `${path.join('.')} is ${expected}, found ${foundIn(rule, value)}. Leave it out for its default.`,
      );
    if ('kind' in rule && rule.kind === 'group' && typeof value === 'object' && value !== null)
      checkKinds(rule.of, value, path);
  }
}

/** A text or an object may be a secret, unless the option is a switch or a number. */
function foundIn(rule: OptionRule, value: unknown): string {
  const isPlain = !('kind' in rule) || rule.kind === 'boolean' || rule.kind === 'share';
  return value === null || typeof value === 'boolean' || (isPlain && typeof value !== 'object')
    ? String(value)
    : `a ${typeof value}`;
}

/** Undefined if the value is of this kind. */
function expectedOf(rule: Exclude<OptionRule, NumberRule>, value: unknown): string | undefined {
  switch (rule.kind) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'true or false';
    case 'text':
    case 'url':
      return typeof value === 'string' ? undefined : 'a text';
    case 'list':
      return Array.isArray(value) && value.every((one) => typeof one === 'string') ? undefined : 'a list of texts';
    case 'json':
    case 'group':
      if (rule.kind === 'group' && rule.switch && typeof value === 'boolean') return undefined;
      return typeof value === 'object' && value !== null ? undefined : 'an object';
    case 'share':
      return typeof value === 'number' ? undefined : 'a number';
    case 'choice':
      return undefined;
  }
}
