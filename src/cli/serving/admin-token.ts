import { randomBytes } from 'node:crypto';
import { userInfo } from 'node:os';
import { checkAdmin } from '../../config/admin-options.ts';
import { shareConnections } from '../../config/connections.ts';
import type { Config } from '../../config/define-config.ts';
import { checkStoreConnections } from '../../config/read-store-options.ts';

/** A configuration under which the admin page is served, and the path at which the user finds it. */
export interface WithAdmin<C> {
  readonly config: C;
  /** Such as `/admin/#token=…`. Browsers do not send the fragment to any server. Undefined if it is not served. */
  readonly adminPath: string | undefined;
}

/** For development: if the admin page is not configured, serves it with a generated token. */
export function withAdminToken<C extends Config>(config: C): WithAdmin<C> {
  if (config.gateway.admin) return { config, adminPath: adminPathOf(config) };
  const token = randomBytes(24).toString('base64url');
  const admin = checkAdmin({ tokens: [{ name: userInfo().username, token, rights: 'all' }] });
  const served = { ...config, gateway: { ...config.gateway, admin } };
  // A small `maxConnections` of a database has none to spare for it.
  if (!hasEnoughConnections(served)) return { config, adminPath: undefined };
  return { config: served, adminPath: `/admin/#token=${token}` };
}

/** Undefined if the admin page is not served. */
export function adminPathOf({ gateway }: Pick<Config, 'gateway'>): string | undefined {
  return gateway.admin ? '/admin/' : undefined;
}

function hasEnoughConnections(config: Config): boolean {
  try {
    shareConnections(config);
    checkStoreConnections(config.readStores, config.gateway);
    return true;
  } catch {
    return false;
  }
}
