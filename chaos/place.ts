import { type AppProcess, type ProcessOptions, startProcess } from './processes.ts';
import type { Network } from './server.ts';

/** Where processes run one after another: each has the same networks to the databases, and a gateway has the same port. */
export interface Place {
  readonly role: 'worker' | 'gateway';
  /** Such as `worker 1`. */
  readonly name: string;
  /** To the database of the log. */
  readonly network: Network;
  /** To the read store in the other server. */
  readonly storeNetwork: Network;
  /** Of a gateway's GraphQL API. */
  readonly url: string;
  /** Undefined while it is down. */
  readonly process: AppProcess | undefined;
  /** The name of the next process here, such as `worker 1.4`. */
  nextName(): string;
  /** @throws if it ends before it runs */
  start(options: Omit<ProcessOptions, 'url' | 'storeUrl' | 'port'>): Promise<void>;
  /** The place is empty from now on. */
  leave(): void;
}

export interface PlaceOptions extends Pick<Place, 'role' | 'network' | 'storeNetwork'> {
  readonly index: number;
  readonly port: number;
}

export function createPlace({ role, index, network, storeNetwork, port }: PlaceOptions): Place {
  let lives = 0;
  let process: AppProcess | undefined;
  const name = `${role} ${index}`;
  const nextName = () => `${name}.${lives + 1}`;
  return {
    role,
    name,
    network,
    storeNetwork,
    url: `http://127.0.0.1:${port}/graphql`,
    get process() {
      return process;
    },
    nextName,
    async start(options) {
      const ownName = nextName();
      lives++;
      process = await startProcess(`${role}.ts`, ownName, {
        ...options,
        url: network.url,
        storeUrl: storeNetwork.url,
        port,
      });
    },
    leave() {
      process = undefined;
    },
  };
}
