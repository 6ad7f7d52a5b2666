import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import { dirname, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { DockerfileParser } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { Deployment } from 'kubernetes-models/apps/v1';
import { Job } from 'kubernetes-models/batch/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Service } from 'kubernetes-models/v1';
import { expect, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { wordsOf } from '../../src/cli/setup/create-project.ts';

// Each file of a deployment is read by a parser of its format. test/system/deployment.test.ts runs their commands.

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const files = (pattern: string) => globSync(pattern, { cwd: root }).toSorted();

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

interface ComposeService {
  readonly image: string;
  readonly build?: string;
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>> | readonly string[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly selector?: unknown;
    readonly template?: { readonly metadata: { readonly labels: unknown }; readonly spec: PodSpec };
  };
}

interface PodSpec {
  readonly terminationGracePeriodSeconds?: number;
  readonly containers: readonly {
    readonly image: string;
    readonly env: readonly { readonly name: string; readonly value: string }[];
  }[];
}

const compose: Compose = parse(read('compose.yaml'), { merge: true });
const manifests = ['gateway', 'migrate', 'worker'].flatMap((name) =>
  parseAllDocuments(read(`kubernetes/${name}.yaml`)).map((document): Manifest => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  }),
);

/** The Dockerfile of this repository, and those of `refold init`. */
const dockerfiles = [
  read('Dockerfile'),
  ...(['npm', 'pnpm', 'yarn', 'bun'] as const).map((manager) => {
    const words: Readonly<Record<string, string>> = { ...wordsOf(manager), node: '24.21.0' };
    return read('templates/shared/Dockerfile').replaceAll(/\{\{(\w+)\}\}/g, (_, word) => words[word] ?? word);
  }),
];

test.each(dockerfiles.map((text, index) => [index, text]))('Dockerfile %i is valid', (_, text) => {
  expect(validate(text)).toEqual([]);
});

test('every image and every action is pinned to a version', () => {
  const bases = dockerfiles.flatMap((text) =>
    DockerfileParser.parse(text)
      .getFROMs()
      .map((from) => from.getImage() ?? ''),
  );
  const workflows = files('.github/workflows/*.yml').map(read).join('\n');
  const images = [
    ...bases,
    ...Object.values(compose.services).map(({ image }) => image),
    ...files('kubernetes/*.yaml').flatMap((file) =>
      [...read(file).matchAll(/^ +image: (\S+)$/gm)].map(([, image]) => image),
    ),
    ...[...workflows.matchAll(/^ +container: (\S+)$/gm)].map(([, image]) => image),
  ];
  expect(images.length).toBeGreaterThan(15);
  // The first one is built here. The second one gets its tag from kustomization.yaml.
  const own = ['refold-sample:local', 'shop'];
  expect(images.filter((image) => !own.includes(image ?? '') && !/:v?\d+\.\d+\.?\d*/.test(image ?? ''))).toEqual([]);
  const actions = [...workflows.matchAll(/uses: (\S+)$/gm)].map(([, action]) => String(action));
  expect(actions.filter((action) => !/^\.\/|@v\d+\.\d+\.\d+$/.test(action))).toEqual([]);
});

test('compose.yaml names services, volumes and files that exist', () => {
  const named = Object.values(compose.services).flatMap(({ depends_on = {} }) =>
    Array.isArray(depends_on) ? depends_on : Object.keys(depends_on),
  );
  expect(named.filter((name) => !(name in compose.services))).toEqual([]);
  const sources = Object.values(compose.services).flatMap(({ volumes = [] }) =>
    volumes.map((one) => one.split(':')[0]),
  );
  const lost = sources.filter((source = '') =>
    source.startsWith('.') ? !existsSync(join(root, source)) : !(source in compose.volumes),
  );
  expect(lost).toEqual([]);
});

test('Prometheus of compose.yaml asks every process, and has the rules; Grafana has the source and the dashboard', () => {
  const mounted = (service: string) =>
    new Map(
      (compose.services[service]?.volumes ?? []).map((volume) => volume.split(':').slice(0, 2) as [string, string]),
    );
  const prometheus = parse(read('monitoring/prometheus.yaml'));
  const places = mounted('prometheus');
  const place = places.get('./monitoring/prometheus.yaml') ?? '';
  expect(prometheus.rule_files.map((rules: string) => posix.join(dirname(place), rules))).toEqual([
    places.get('./monitoring/alerts.yaml'),
  ]);
  expect(prometheus.scrape_configs[0].dns_sd_configs[0]).toMatchObject({ names: ['gateway', 'worker'], port: 4000 });
  expect(parse(read('monitoring/alerts.yaml')).groups[0].rules.length).toBeGreaterThan(10);
  const grafana = mounted('grafana');
  const provider = parse(read('monitoring/grafana/dashboards.yaml')).providers[0];
  expect(dirname(grafana.get('./monitoring/grafana-dashboard.json') ?? '')).toBe(provider.options.path);
  const [source] = parse(read('monitoring/grafana/datasource.yaml')).datasources;
  expect(source).toMatchObject({ type: 'prometheus', url: 'http://prometheus:9090', isDefault: true });
});

test('the manifests for Kubernetes fit its schemas', async () => {
  const models = { Deployment, Job, PodDisruptionBudget, Service } as const;
  for (const { kind, ...manifest } of manifests) new models[kind as 'Job'](manifest as never).validate(); // the model of its kind; without one, it throws
  // The schemas allow fields that do not exist, such as misspelt ones. The compiler does not.
  await mkdir(join(root, '.refold'), { recursive: true }); // git ignores it
  const folder = await mkdtemp(join(root, '.refold/manifests-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const imports = [
    "import type { IDeployment } from 'kubernetes-models/apps/v1';",
    "import type { IJob } from 'kubernetes-models/batch/v1';",
    "import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1';",
    "import type { IService } from 'kubernetes-models/v1';",
  ];
  const compiles = async (objects: readonly Manifest[]) => {
    const lines = objects.map((one, index) => `export const manifest${index}: I${one.kind} = ${JSON.stringify(one)};`);
    await writeFile(join(folder, 'manifests.ts'), [...imports, ...lines].join('\n'));
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', '', '--ignoreConfig'];
    await promisify(execFile)(join(root, 'node_modules/.bin/tsc'), [...options, 'manifests.ts'], { cwd: folder });
  };
  await compiles(manifests);
  const [first] = manifests;
  const misspelt = { ...first, spec: { ...first?.spec, replica: 2 } } as unknown as Manifest; // a field that does not exist
  await expect(compiles([misspelt])).rejects.toMatchObject({
    stdout: expect.stringContaining('\'"replica"\' does not exist'),
  });
});

test('the manifests agree with each other, and leave a gateway the time that it needs to stop', () => {
  const of = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);
  const deployments = of('Deployment');
  expect(deployments.map(({ metadata }) => metadata.name)).toEqual(['shop-gateway', 'shop-worker']);
  for (const { spec } of deployments) expect(spec.selector).toEqual({ matchLabels: spec.template?.metadata.labels });
  for (const budget of of('PodDisruptionBudget')) {
    const deployment = deployments.find(({ metadata }) => metadata.name === budget.metadata.name);
    expect(budget.spec.selector).toEqual(deployment?.spec.selector);
  }
  const [gateway, worker] = deployments.map(({ spec }) => spec.template?.spec);
  expect(of('Service')[0]?.spec.selector).toEqual(deployments[0]?.spec.template?.metadata.labels);
  const drain = gateway?.containers[0]?.env.find(({ name }) => name === 'REFOLD_GATEWAY_DRAIN_SECONDS')?.value;
  expect(gateway?.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(Number(drain) + 25);
  expect(worker?.terminationGracePeriodSeconds).toBeGreaterThan(25);
  const { resources, images } = parse(read('kubernetes/kustomization.yaml'));
  expect(resources).toEqual(['gateway.yaml', 'worker.yaml']);
  expect(images.map(({ name }: { name: string }) => name)).toEqual(['shop']);
});

test('the workflows are valid, and run what exists', async () => {
  // The parser imports JSON as bundlers allow it, without saying that it is JSON.
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      return specifier.endsWith('.json') ? { ...found, importAttributes: { type: 'json' } } : found;
    },
  });
  onTestFinished(() => hooks.deregister());
  const { NoOperationTraceWriter, parseWorkflow } = await import('@actions/workflow-parser');
  const scripts = Object.keys(JSON.parse(read('package.json')).scripts);
  for (const name of files('.github/workflows/*.yml')) {
    const { context } = parseWorkflow({ name, content: read(name) }, new NoOperationTraceWriter());
    expect(context.errors.getErrors().map(({ message }) => message)).toEqual([]);
    const used = [...read(name).matchAll(/npm run (\S+)/g)].map(([, script]) => String(script));
    expect(used.filter((script) => !scripts.includes(script))).toEqual([]);
  }
  expect(read('.github/workflows/ci.yml')).toContain('run: bash .ci/run');
  const release = parse(read('.github/workflows/release.yml'));
  expect(release.jobs.check.uses).toBe('./.github/workflows/ci.yml');
  expect(release.jobs.release).toMatchObject({ needs: 'check', permissions: { 'id-token': 'write' } });
});
