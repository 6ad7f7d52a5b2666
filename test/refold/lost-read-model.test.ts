import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { createRefold, defineConfig, type Projection, type Refold } from '../../src/index.ts';
import { balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

test('a gateway that loses a read model says so in its log, its metrics and its readiness', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const logged: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line).msg) });
  const start = async (role: 'all' | 'gateway', projections: readonly Projection[]): Promise<Refold> => {
    const config = defineConfig({ projections, gateway: { port: 0 }, database: { url: database.url } });
    const refold = await createRefold(config, {
      role,
      migrate: false,
      logger: role === 'gateway' ? logger : pino({ level: 'silent' }),
    });
    onTestFinished(() => refold.stop());
    return refold;
  };
  const next = await start('all', [balanceV1, balanceV2, openingsV1]);
  const old = await start('gateway', [balanceV1, openingsV1]);
  const get = (path: string) => fetch(`${old.url}${path}`);
  await until(async () => (await get('/health/ready')).ok);
  expect(await (await get('/metrics')).text()).toContain('refold_projection_served{projection="balance"} 1\n');

  await next.lifecycle.retire('balance', 1, { actor: 'ann', reason: 'nobody needs it' });
  const refused = await until(async () => {
    const response = await get('/health/ready');
    return response.status === 503 && response.json();
  });
  const lost = { projection: 'balance', version: 1, state: 'retired', ready: false };
  expect(refused).toEqual({
    ready: false,
    projections: [
      { projection: 'openings', version: 1, state: 'active', ready: true },
      { ...lost, answeredBy: [expect.stringMatching(/^.+:\d+$/)] },
    ],
  });
  const metrics = await (await get('/metrics')).text();
  expect(metrics).toContain('refold_projection_served{projection="balance"} 0\n');
  expect(metrics).toContain('refold_projection_served{projection="openings"} 1\n');
  expect(logged).toContain(
    "this process no longer answers for 'balance': balance@1 is retired. Its fields are no longer in the schema: deploy a program that declares an active version, or none, of 'balance'.",
  );

  // A process should turn clients away only if another one can answer them.
  await next.stop();
  const ready = await until(async () => {
    const response = await get('/health/ready');
    return response.ok && response.json();
  });
  expect(ready).toMatchObject({ ready: true, projections: [{ ready: true }, { ...lost, answeredBy: [] }] });
});
