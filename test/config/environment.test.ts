import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { allOptions } from '../../src/config/all-options.ts';
import { type Environment, environmentOptions, underEnvironment } from '../../src/config/environment.ts';
import type { NamedOption } from '../../src/config/option-rules.ts';
import { type ConfigOptions, defineConfig } from '../../src/index.ts';

const configured = (env: Environment, options: ConfigOptions = {}) => underEnvironment(defineConfig(options), env);

/** A value that an option takes, as text and as what the configuration then has. Groups that need others are left out. */
function settingOf({ rule, path }: NamedOption): readonly [text: string, value: unknown] | undefined {
  if (['cors', 'rateLimit', 'persistedOperations'].includes(path[1] ?? '')) return undefined;
  if (!('kind' in rule)) return [String(rule.max), rule.max];
  switch (rule.kind) {
    case 'share':
      return [String(rule.max), rule.max];
    case 'boolean':
      return ['true', true];
    case 'choice':
      return [rule.of[1] ?? '', rule.of[1]];
    case 'url':
      return ['postgres://db.example/shop', 'postgres://db.example/shop'];
    case 'text':
      return ['shop', 'shop'];
    case 'list':
      return ['a.example, b.example', ['a.example', 'b.example']];
    default:
      return undefined;
  }
}

function read(config: unknown, path: readonly string[]): unknown {
  return path.reduce((part, name) => (part as Record<string, unknown>)[name], config); // a path of the configuration
}

const settable = allOptions.flatMap((option) => {
  const value = settingOf(option);
  return value ? [{ ...option, text: value[0], value: value[1] }] : [];
});

test('every option is set by its variable, alone or with any others, as in the configuration', () => {
  expect(settable.length).toBeGreaterThan(35);
  fc.assert(
    fc.property(fc.subarray(settable), (chosen) => {
      const replica = chosen.some(({ variable }) => variable === 'REFOLD_DATABASE_MAX_READ_LAG');
      const env = {
        ...Object.fromEntries(chosen.map(({ variable, text }) => [variable, text])),
        ...(replica ? { REFOLD_DATABASE_READ_URL: 'postgres://db.example/shop' } : {}),
        ...(chosen.some(({ path }) => path[0] === 'store')
          ? { REFOLD_READ_STORES: '{"shop":{"url":"postgres://db.example/reads"}}' }
          : {}),
        // min must not be above max
        ...(chosen.some(({ path }) => path[1] === 'polling') ? { REFOLD_RUNTIME_POLLING_MAX: '3600000' } : {}),
      };
      const config = configured(env);
      for (const { path, value } of chosen) expect(read(config, path), path.join('.')).toEqual(value);
    }),
  );
});

test('an option of the environment wins over the configuration, and leaves the others', () => {
  const config = configured(
    { REFOLD_RUNTIME_LEASE_SECONDS: '7', REFOLD_RUNTIME_POLLING_MAX: '900' },
    { runtime: { leaseSeconds: 20, pageSize: 11, polling: { max: 800, step: 5 } } },
  );
  expect(config.runtime).toMatchObject({ leaseSeconds: 7, pageSize: 11, polling: { max: 900, step: 5 } });
  expect(configured({ REFOLD_RUNTIME_LEASE_SECONDS: '' }, { runtime: { leaseSeconds: 20 } }).runtime.leaseSeconds).toBe(
    20,
  );
  expect(Object.isFrozen(config) && Object.isFrozen(config.runtime)).toBe(true);
});

test('a group is switched on with its defaults or those of the configuration, and switched off as a whole', () => {
  expect(configured({ REFOLD_RUNTIME_AUDIT: 'true' }).runtime.audit).toEqual({ everySeconds: 3600, oneOf: 100 });
  expect(configured({ REFOLD_RUNTIME_AUDIT: 'true' }, { runtime: { audit: { oneOf: 7 } } }).runtime.audit).toEqual({
    everySeconds: 3600,
    oneOf: 7,
  });
  expect(configured({ REFOLD_RUNTIME_AUDIT_ONE_OF: '9' }).runtime.audit).toEqual({ everySeconds: 3600, oneOf: 9 });
  expect(configured({ REFOLD_RUNTIME_AUDIT: 'false', REFOLD_RUNTIME_AUDIT_ONE_OF: '9' }).runtime.audit).toBe(false);
  expect(configured({ REFOLD_GATEWAY_FIELD_USAGE: '0' }).gateway.fieldUsage).toBe(false);
});

test('lists, limits and persisted operations come from the environment too', () => {
  const hash = 'a'.repeat(64);
  const { gateway } = configured({
    REFOLD_GATEWAY_CORS_ORIGINS: 'https://shop.example, https://admin.example',
    REFOLD_GATEWAY_RATE_LIMIT_OPERATIONS: '100',
    REFOLD_GATEWAY_PERSISTED_OPERATIONS_DOCUMENTS: JSON.stringify({ [hash]: '{ __typename }' }),
    REFOLD_GATEWAY_PERSISTED_OPERATIONS_ONLY: 'true',
  });
  expect(gateway).toMatchObject({
    cors: { origins: ['https://shop.example', 'https://admin.example'], credentials: false },
    rateLimit: { operations: 100, seconds: 60 },
    persistedOperations: { documents: { [hash]: '{ __typename }' }, only: true },
  });
});

async function fileOf(content: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'refold-secret-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'value'), content);
  return join(folder, 'value');
}

test('a variable may name a file that holds the value', async () => {
  const file = await fileOf('postgres://app:s3cret@db.example/shop\n');
  expect(configured({ DATABASE_URL_FILE: file }).database.url).toBe('postgres://app:s3cret@db.example/shop');
  expect(configured({ REFOLD_DATABASE_READ_URL_FILE: file }).database.readUrl).toContain('s3cret');
  expect(configured({ REFOLD_RUNTIME_LEASE_SECONDS_FILE: await fileOf('12') }).runtime.leaseSeconds).toBe(12);
  expect(environmentOptions({ DATABASE_URL_FILE: file })).toMatchObject([{ source: 'DATABASE_URL_FILE' }]);
});

test('the variable of an option comes before the one that platforms set', () => {
  expect(configured({ PORT: '5000' }).gateway.port).toBe(5000);
  expect(configured({ PORT: '5000', REFOLD_GATEWAY_PORT: '6000' }).gateway.port).toBe(6000);
});

test('variables that Kubernetes sets for a service named refold-gateway are no options', () => {
  const links = {
    REFOLD_GATEWAY_PORT: 'tcp://10.0.0.11:4000',
    REFOLD_GATEWAY_PORT_4000_TCP: 'tcp://10.0.0.11:4000',
    REFOLD_GATEWAY_PORT_4000_TCP_ADDR: '10.0.0.11',
    REFOLD_GATEWAY_SERVICE_HOST: '10.0.0.11',
    REFOLD_GATEWAY_SERVICE_PORT: '4000',
  };
  expect(environmentOptions(links)).toEqual([]);
  expect(environmentOptions({ REFOLD_RETAIL_FILE: '/x', REFOLD_HOME: '/y' })).toEqual([]);
});

test.for<[Environment, string]>([
  [
    { REFOLD_RUNTIME_OWNERSHIPS: 'lease' },
    "The environment has an unknown option REFOLD_RUNTIME_OWNERSHIPS. Did you mean 'REFOLD_RUNTIME_OWNERSHIP'? docs/options.md lists all.",
  ],
  [
    { REFOLD_RUNTIME_OWNERSHIP: 'leese' },
    "REFOLD_RUNTIME_OWNERSHIP is advisory, lease, memory; found 'leese'. Did you mean 'lease'?",
  ],
  [{ REFOLD_RUNTIME_LEASE_SECONDS: '0' }, "REFOLD_RUNTIME_LEASE_SECONDS is a whole number from 1 to 3600, found '0'."],
  [
    { REFOLD_RUNTIME_LEASE_SECONDS: '1.5' },
    "REFOLD_RUNTIME_LEASE_SECONDS is a whole number from 1 to 3600, found '1.5'.",
  ],
  [{ REFOLD_RUNTIME_POLLING_JITTER: '2' }, "REFOLD_RUNTIME_POLLING_JITTER is a number from 0 to 1, found '2'."],
  [{ REFOLD_DATABASE_PREPARE: 'yes' }, "REFOLD_DATABASE_PREPARE is true or false, found 'yes'."],
  [
    { REFOLD_GATEWAY_PERSISTED_OPERATIONS_DOCUMENTS: '{' },
    'REFOLD_GATEWAY_PERSISTED_OPERATIONS_DOCUMENTS is not JSON.',
  ],
  [{ DATABASE_URL: 'mysql://u:s3cret@h/d' }, "DATABASE_URL is not a PostgreSQL URL; it starts with 'postgres://'."],
  [{ DATABASE_URL_FILE: '/no/such/file' }, "DATABASE_URL_FILE names '/no/such/file', which can't be read (ENOENT)."],
  [
    { DATABASE_URL: 'postgres://h/d', DATABASE_URL_FILE: '/x' },
    'DATABASE_URL and DATABASE_URL_FILE set the same option. Set one of them.',
  ],
  [
    { REFOLD_DATABASE_NOTIFICATIONS: 'false' },
    "database.notifications is false, as behind a pooler in transaction mode, where advisory locks don't hold. Set runtime.ownership to 'lease'.",
  ],
])('%j is refused', ([env, message]) => {
  expect(() => configured(env)).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG', message }));
});
