import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Database } from '../src/store/postgres/database.ts';
import { readRegistry } from '../src/store/registry/registry.ts';
import type { Balancer } from './balancer.ts';
import { type Deployment, environmentOf } from './deployment.ts';
import { type Deployed, deploy, type Role } from './processes.ts';

export interface Fleet {
  readonly processes: readonly Deployed[];
  /** A gateway and a worker that are never replaced, and declare only the first versions. */
  readonly steady: readonly Deployed[];
  /** Whether a process declares the version of this projection. */
  declares(name: string, version: number): boolean;
  /** Starts all processes, or restarts them behind another URL. */
  start(url: string, pooled: boolean): Promise<void>;
  /** Replaces the processes one by one: a new one is ready, then the old one gets SIGTERM. Returns what was deployed. */
  roll(): Promise<string>;
  stop(): Promise<void>;
  kill(): void;
}

export interface FleetOptions {
  readonly db: Database;
  readonly balancer: Balancer;
  onLog(process: string, level: number, message: string): void;
  /** Called with a sentence for each event that must not happen. */
  onIncident(sentence: string): void;
}

interface Place {
  readonly name: string;
  readonly role: Role;
  lives: number;
  process: Deployed | undefined;
}

const readyMs = 120_000;

/** Two gateways and two workers that are replaced, and one of each that is not. */
export function createFleet({ db, balancer, onLog, onIncident }: FleetOptions): Fleet {
  const place = (name: string, role: Role): Place => ({ name, role, lives: 0, process: undefined });
  const steadyPlaces = [place('steady worker', 'worker'), place('steady gateway', 'gateway')];
  const rolled = [
    ...[1, 2].map((n) => place(`worker ${n}`, 'worker')),
    ...[1, 2].map((n) => place(`gateway ${n}`, 'gateway')),
  ];
  const steadyVersions = { lowest: 1, highest: 1 };
  const versions = { lowest: 1, highest: 1 };
  let through = { url: '', pooled: false };
  let deployments = 0;

  async function fill(to: Place, deployment: Deployment): Promise<void> {
    to.lives++;
    const process = await deploy(`${to.name}.${to.lives}`, to.role, deployment, { url: through.url, onLog });
    to.process = process;
    if (to.role === 'worker') return;
    balancer.add(process);
    await reached(
      `${process.name} is ready`,
      async () => (await fetch(`${process.url}/health/ready`).catch(() => undefined))?.ok ?? false,
    );
  }

  async function empty(process: Deployed): Promise<void> {
    if (process.death) onIncident(`${process.name} ${process.death}`);
    const problem = await process.stop();
    if (problem) onIncident(problem);
    balancer.remove(process);
  }

  async function reached(what: string, condition: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + readyMs;
    while (!(await condition())) {
      if (Date.now() > deadline) return onIncident(`not after ${readyMs / 1000} s: ${what}`);
      await pause(50);
    }
  }

  const stateOf = async (version: number) =>
    (await readRegistry(db)).find((one) => one.name === 'balance' && one.version === version)?.state;

  /** Retires the versions that no process declares any more, as an operator does. */
  async function retire(): Promise<string> {
    const old = (await readRegistry(db)).filter(
      ({ name, version, state }) =>
        name === 'balance' && state !== 'retired' && version > 1 && version < versions.lowest,
    );
    for (const { version } of old) await refold('retire', `balance@${version}`, '--grace', '0.005');
    return old.map(({ version }) => `, balance@${version} retired`).join('');
  }

  async function refold(...cliArguments: string[]): Promise<void> {
    const cli = [
      join(import.meta.dirname, '../src/cli/main.ts'),
      ...cliArguments,
      '--config',
      join(import.meta.dirname, 'app.ts'),
    ];
    const env = {
      ...process.env,
      ...environmentOf({ ...versions, pooled: through.pooled }),
      DATABASE_URL: through.url,
    };
    await promisify(execFile)(process.execPath, cli, { env }).catch((error: unknown) =>
      onIncident(`refold ${cliArguments.join(' ')}: ${String(error)}`),
    );
  }

  return {
    get processes() {
      return [...steadyPlaces, ...rolled].flatMap(({ process }) => process ?? []);
    },
    get steady() {
      return steadyPlaces.flatMap(({ process }) => process ?? []);
    },
    declares: (name, version) =>
      name !== 'balance' || version === 1 || (versions.lowest <= version && version <= versions.highest),
    async start(url, pooled) {
      through = { url, pooled };
      await Promise.all([
        ...steadyPlaces.map((one) => fill(one, { ...steadyVersions, pooled })),
        ...rolled.map((one) => fill(one, { ...versions, pooled })),
      ]);
    },
    async roll() {
      deployments++;
      const turn = deployments % 3;
      if (turn === 1) versions.highest++;
      if (turn === 2) versions.lowest = versions.highest;
      for (const one of rolled) {
        const old = one.process;
        await fill(one, { ...versions, pooled: through.pooled });
        if (old) await empty(old);
      }
      const newest = versions.highest;
      await reached(`balance@${newest} is active`, async () => (await stateOf(newest)) === 'active');
      const retired = turn === 0 ? await retire() : '';
      return `all replaced, with balance@1 and balance@${versions.lowest} to ${versions.highest}${retired}`;
    },
    async stop() {
      const all = [...rolled, ...steadyPlaces];
      const running = all.flatMap(({ process }) => process ?? []);
      for (const one of all) one.process = undefined;
      await Promise.all(running.map(empty));
    },
    kill() {
      for (const { process } of [...rolled, ...steadyPlaces]) process?.kill();
    },
  };
}
