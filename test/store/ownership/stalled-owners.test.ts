import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, test } from 'vitest';
import { createAdvisoryOwnership } from '../../../src/store/ownership/advisory-ownership.ts';
import { createLeaseOwnership } from '../../../src/store/ownership/lease-ownership.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { until } from '../../support/until.ts';
import { patiently } from './patient-owner.ts';

const { database } = await databaseOfFile();
const children = new Set<ReturnType<typeof spawn>>();
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

// Ten seconds instead of thirty, which keeps this test below a minute.
const leaseSeconds = 10;
const kinds = { advisory: createAdvisoryOwnership, lease: createLeaseOwnership };

test.concurrent.each([
  'advisory',
  'lease',
] as const)('an owner whose code blocks its event loop for longer than the bound is not replaced, with ownership %s', async (kind) => {
  const program = join(import.meta.dirname, 'stalled-holder.ts');
  const child = spawn(process.execPath, [program, kind, database.url, kind, String(leaseSeconds)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.add(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  expect((await lines.next()).value).toBe('held');
  const rival = kinds[kind]({ url: database.url, leaseSeconds });
  // The holder stalls and then says whether it is still the owner. Until then, the rival asks again and again.
  let isOver = false;
  let stolen = false;
  const tries = until(async () => {
    stolen ||= (await patiently(rival, kind)) !== null;
    return isOver;
  });
  expect((await lines.next()).value).toBe('still the owner');
  isOver = true;
  await tries;
  child.stdin.end();
  await once(child, 'exit');
  await rival.close();
  expect(stolen).toBe(false);
});
