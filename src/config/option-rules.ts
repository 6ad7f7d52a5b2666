import type { NumberRule, ShareRule } from './option-checks.ts';

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
