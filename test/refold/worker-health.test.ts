import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster } from '../support/postgres-cluster.ts';
import { account, balanceV1 } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';

let server: PostgresCluster;
let worker: Refold;

beforeAll(async () => {
  server = await startOwnServer();
  worker = await start(0);
});
afterAll(async () => {
  await worker.stop();
  await server.stop();
});

const start = (healthPort: number) =>
  createRefold(defineConfig({ projections: [balanceV1], database: { url: server.url }, runtime: { healthPort } }), {
    role: 'worker',
    migrate: true,
    logger: pino({ level: 'silent' }),
    name: `worker-${healthPort}`,
  });

const get = async (path: string) => {
  const response = await fetch(`${worker.healthUrl}${path}`);
  return { status: response.status, body: await response.text() };
};

test('a worker with a health port answers probes and scrapes', async () => {
  expect(worker.url).toBeUndefined();
  expect(await get('/health/live')).toEqual({ status: 200, body: '' });
  expect(await get('/health/ready')).toEqual({ status: 200, body: '{"ready":true}' });
  await worker.log.append({ family: account, streamId: 'a', events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  await until(async () =>
    (await get('/metrics')).body.includes('refold_events_folded_total{projection="balance",version="1"} 1'),
  );
  expect((await get('/metrics')).body).toContain('nodejs_eventloop_lag_p99_seconds');
  expect((await get('/graphql')).status).toBe(404);
});

test('a port that is taken is refused with the option that sets it', async () => {
  const port = Number(new URL(String(worker.healthUrl)).port);
  await expect(start(port)).rejects.toThrow(
    `Port ${port} of 127.0.0.1 is taken by another program. Stop that program, or choose another port: --health-port ${port + 1}, or runtime.healthPort in the configuration`,
  );
});

test('a worker is not ready while the database is away, and still responds', async () => {
  await server.kill();
  const { body } = await until(async () => {
    const answer = await get('/health/ready');
    return answer.status === 503 && answer;
  });
  expect(JSON.parse(body)).toMatchObject({ ready: false, problems: { appends: expect.any(String) } });
  expect(await get('/health')).toMatchObject({ status: 200, body });
  await server.restart();
  await until(async () => (await get('/health/ready')).status === 200);
});
