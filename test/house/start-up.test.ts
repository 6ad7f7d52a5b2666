import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);

// Prints every loaded module, whichever module imports it.
const watched = `
import { registerHooks } from 'node:module';
registerHooks({ load(url, context, next) { console.log(url); return next(url, context); } });`;

test('importing the package does not load GraphQL: only a gateway loads it', async () => {
  const index = join(import.meta.dirname, '../../src/index.ts');
  const { stdout } = await run(process.execPath, [
    '--import',
    `data:text/javascript,${encodeURIComponent(watched)}`,
    '--eval',
    `import('${index}')`,
  ]);
  const loaded = stdout.trim().split('\n');
  expect(loaded.filter((url) => url.endsWith('/src/index.ts'))).toHaveLength(1);
  expect(loaded.filter((url) => /node_modules\/(graphql|@pothos|@graphql-tools|prom-client)/.test(url))).toEqual([]);
});

test('without an SDK of OpenTelemetry nothing of it is loaded, although the package is installed', async () => {
  const tracing = join(import.meta.dirname, '../../src/tracing.ts');
  const { stdout } = await run(process.execPath, [
    '--import',
    `data:text/javascript,${encodeURIComponent(watched)}`,
    '--eval',
    `import('${tracing}').then(async ({ startTracing, isTracing }) => { await startTracing(); console.log('tracing', isTracing); })`,
  ]);
  expect(stdout.trim().split('\n').at(-1)).toBe('tracing false');
  expect(stdout).not.toContain('@opentelemetry');
});
