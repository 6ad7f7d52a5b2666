import { type AppProcess, type ProcessOptions, startProcess } from './processes.ts';
import type { Network } from './server.ts';

/** Where processes run one after another: each has the same network to the database, and a gateway has the same port. */
export interface Place {
  readonly role: 'worker' | 'gateway';
  /** Such as `worker 1`. */
  readonly name: string;
  readonly network: Network;
  /** Of a gateway's GraphQL API. */
  readonly url: string;
  /** Undefined while it is down. */
  readonly process: AppProcess | undefined;
  /** The name of the next process here, such as `worker 1.4`. */
  nextName(): string;
  /** @throws if it ends before it runs */
  start(options: Omit<ProcessOptions, 'url' | 'port'>): Promise<void>;
  /** The place is empty from now on. */
  leave(): void;
}

export function createPlace(role: Place['role'], index: number, network: Network, port: number): Place {
  let lives = 0;
  let process: AppProcess | undefined;
  const name = `${role} ${index}`;
  const nextName = () => `${name}.${lives + 1}`;
  return {
    role,
    name,
    network,
    url: `http://127.0.0.1:${port}/graphql`,
    get process() {
      return process;
    },
    nextName,
    async start(options) {
      const ownName = nextName();
      lives++;
      process = await startProcess(`${role}.ts`, ownName, { ...options, url: network.url, port });
    },
    leave() {
      process = undefined;
    },
  };
}
