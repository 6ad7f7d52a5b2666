import { expect, test } from 'vitest';
import { allOptions } from '../../src/config/all-options.ts';
import { type ConfigOptions, defineConfig } from '../../src/config/define-config.ts';

const odd = [false, true, null, 1.5, -1, '', 'x', [], {}, [1], () => {}];

/** What a configuration with this value at this place becomes: the place of the checked value, or its refusal. */
function configured(path: readonly string[], value: unknown): unknown {
  const given = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
  try {
    return path.reduce<unknown>(
      (of, name) => (of as Record<string, unknown>)?.[name],
      defineConfig(given as ConfigOptions),
    );
  } catch (error) {
    return (error as { code?: unknown }).code ?? error;
  }
}

const options = allOptions.map(({ path, rule }) => [path.join('.'), path, rule] as const);

test.for(options)('%s takes values of its kind, and refuses all others by name', ([, path, rule]) => {
  const accepts = (value: unknown): boolean => {
    if (!('kind' in rule)) return typeof value === 'number';
    switch (rule.kind) {
      case 'boolean':
        return typeof value === 'boolean';
      case 'share':
        return typeof value === 'number';
      case 'text':
      case 'url':
      case 'choice':
        return typeof value === 'string';
      case 'list':
        return Array.isArray(value);
      case 'json':
      case 'group':
        return typeof value === 'object' || typeof value === 'boolean';
    }
  };
  for (const value of odd) {
    const found = configured(path, value);
    if (!accepts(value)) expect([value, found]).toEqual([value, 'INVALID_CONFIG']);
    expect(found instanceof Error ? found.message : '').toBe('');
  }
});

test('a group of options that has no switch is left out, not switched off', () => {
  for (const path of [
    ['gateway', 'rateLimit'],
    ['gateway', 'cors'],
    ['gateway', 'persistedOperations'],
    ['gateway', 'admin'],
    ['runtime', 'polling'],
  ])
    for (const value of [false, true, null, 0, ''])
      expect([path, value, configured(path, value)]).toEqual([path, value, 'INVALID_CONFIG']);
});
