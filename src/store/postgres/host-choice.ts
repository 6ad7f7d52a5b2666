import pg from 'pg';
import type { Host, HostList, SessionTarget } from '../../config/host-list.ts';
import { RefoldError } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';

/** Chooses the host for a new connection. */
export interface HostChoice {
  /** @throws RefoldError `DATABASE_UNAVAILABLE` if no host matches */
  choose(): Promise<Host>;
  /** @throws RefoldError `DATABASE_UNAVAILABLE` if the session does not match the target. The next connection then chooses again. */
  verify(client: pg.ClientBase): Promise<void>;
}

// A burst of new connections shares one choice. Each connection verifies it.
const chosenForMs = 1000;

/** Undefined if there is nothing to choose. The hosts share the connect timeout. */
export function createHostChoice(
  { hosts, target }: HostList,
  config: pg.ClientConfig & { readonly connectionTimeoutMillis: number },
): HostChoice | undefined {
  if (hosts.length === 1 && target === 'any') return undefined;
  const connectionTimeoutMillis = config.connectionTimeoutMillis / hosts.length;
  let choosing: Promise<Host> | undefined;
  let last: Host | undefined;

  /** Tries the last matching host first, then the others in the order of the URL. */
  async function find(): Promise<Host> {
    const order = last === undefined ? hosts : [last, ...hosts.filter((host) => host !== last)];
    const problems: string[] = [];
    for (const wanted of target === 'prefer-standby' ? (['standby', 'any'] as const) : [target]) {
      for (const host of order) {
        const problem = await problemOf(host, wanted);
        if (problem === undefined) {
          last = host;
          return host;
        }
        problems.push(`${host.host}:${host.port}: ${problem}`);
      }
    }
    throw new RefoldError('DATABASE_UNAVAILABLE', `No host of the URL is ${target}. ${problems.join('; ')}`, {
      sent: false,
    });
  }

  async function problemOf(host: Host, wanted: SessionTarget): Promise<string | undefined> {
    const client = Object.assign(new pg.Client({ ...config, connectionTimeoutMillis }), host);
    client.on('error', () => {}); // errors of the connection, which the statement also reports
    const limit = setTimeout(() => client.connection.stream.destroy(), 2 * connectionTimeoutMillis);
    try {
      await client.connect();
      const problem = await mismatch(client, wanted);
      await client.end();
      return problem;
    } catch (error) {
      return reasonOf(error);
    } finally {
      clearTimeout(limit);
      client.connection.stream.destroy();
    }
  }

  return {
    choose() {
      if (!choosing) {
        const mine = find();
        choosing = mine;
        const forget = () => {
          if (choosing === mine) choosing = undefined;
        };
        mine.then(() => setTimeout(forget, chosenForMs).unref(), forget);
      }
      return choosing;
    },
    async verify(client) {
      const problem = target === 'prefer-standby' ? undefined : await mismatch(client, target);
      if (problem === undefined) return;
      choosing = undefined;
      throw new RefoldError('DATABASE_UNAVAILABLE', `The host of the URL is not ${target}: ${problem}`, {
        sent: false,
      });
    },
  };
}

async function mismatch(client: pg.ClientBase, target: SessionTarget): Promise<string | undefined> {
  const { rows } = await client.query<{ standby: boolean; readOnly: boolean }>(
    `select pg_is_in_recovery() as standby, current_setting('transaction_read_only')::boolean as "readOnly"`,
  );
  const { standby = false, readOnly = false } = rows[0] ?? {};
  switch (target) {
    case 'any':
      return undefined;
    case 'read-write':
      return readOnly ? 'it takes no writes' : undefined;
    case 'read-only':
      return readOnly ? undefined : 'it takes writes';
    case 'primary':
      return standby ? 'it is a standby' : undefined;
    case 'standby':
    case 'prefer-standby':
      return standby ? undefined : 'it is a primary';
  }
}
