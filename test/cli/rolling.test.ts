import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createBalancer } from '../../soak/balancer.ts';
import { createClientRecord } from '../../soak/client-record.ts';
import { startWatcher } from '../../soak/watcher.ts';
import { startCli } from '../support/cli.ts';
import { effort } from '../support/effort.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { applicationFile } from './application-file.ts';

test('rolling deployments behind a balancer do not affect clients: no failed mutation, no reset, no ended subscription', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const config = await applicationFile(`export default defineConfig({
    projections: [balanceV1],
    commands: [openAccount, credit],
    gateway: { positionTimeout: 300_000 },
  });`);
  const start = (role: string) =>
    startCli(['start', '--role', role, '--config', config], {
      env: { DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'warn' },
    });
  const record = createClientRecord(
    () => performance.now(),
    () => {},
  );
  const balancer = createBalancer(record, 100);
  onTestFinished(() => balancer.close());

  /** A gateway that the balancer sends requests to. */
  async function deploy(name: string) {
    const cli = start('gateway');
    const process = { name, url: await cli.url(), stopping: false };
    balancer.add(process);
    await until(async () => (await balancer.pick()).process === process);
    await until(() => answers(process.url)); // it hears of the first activation a moment after the registry says so
    return { cli, process };
  }

  async function answers(url: string): Promise<boolean> {
    const body = JSON.stringify({ query: '{ balances { totalCount } }' });
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    return !(await response.text()).includes('errors');
  }

  async function mutate(field: string, input: string): Promise<void> {
    const query = `mutation { ${field}(input: { ${input} }) { position } }`;
    try {
      const { status, text, backend } = await balancer.post('/graphql', {}, JSON.stringify({ query }));
      if (status !== 200 || !text.startsWith('{"data":{')) record.failed('mutation', text, backend.process.name);
    } catch (error) {
      record.failed('mutation', String(error), '');
    }
  }

  const worker = start('worker');
  await worker.prints(/maintains the read models/);
  const gateways = [await deploy('1'), await deploy('2')];
  await mutate('openAccount', 'accountId: "a", owner: "Ada"');
  const seen: string[] = [];
  const watchers = Array.from({ length: 8 }, (_, n) =>
    startWatcher(
      {
        name: `subscription ${n}`,
        query: 'subscription { balance(accountId: "a") { amount } }',
        variables: {},
        apply({ balance }) {
          seen[n] = (balance as { amount: string }).amount;
        },
      },
      { balancer, record, over: 'server-sent events' },
    ),
  );
  let credits = 0;
  let isOver = false;
  const clients = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      credits++;
      await mutate('credit', 'accountId: "a", amount: "1"');
      await pause(20); // lets other tests on this machine run
    }
  });
  await until(() => seen.filter(Boolean).length === watchers.length);

  for (const name of ['3', '4', '5'].slice(0, effort(3, 1))) {
    gateways.push(await deploy(name));
    const [old] = gateways.splice(0, 1);
    const { cli, process } = old as (typeof gateways)[number]; // there are three
    process.stopping = true;
    expect(await cli.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
    balancer.remove(process);
  }
  isOver = true;
  await Promise.all(clients);
  await until(() => record.failures.size > 0 || seen.every((amount) => amount === `${credits}.00`));
  await Promise.all(watchers.map((watcher) => watcher.stop()));

  expect([...record.failures]).toEqual([]);
  // Half of them were connected to the first gateway that ended.
  const reopened = record.events.get('a subscription over server-sent events was reopened');
  expect(reopened).toBeGreaterThanOrEqual(watchers.length / 2);
  for (const { cli } of [...gateways, { cli: worker }]) expect(await cli.end('SIGTERM')).toMatchObject({ code: 0 });
}, 900_000); // six programs start one after another, on a machine that may be busy
