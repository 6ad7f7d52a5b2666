import pg from 'pg';
import { balance, declared, families } from '../chaos/domain.ts';
import { reactorsOf } from '../chaos/reactors.ts';
import { type Config, defineConfig, type Projection, type Viewer } from '../src/index.ts';
import { maxPageSize } from '../test/refold/naive-groups.ts';
import { ownerV1, placeV1, thingV1 } from '../test/refold/things.ts';
import { commands } from './commands.ts';
import { type Deployment, deploymentOf } from './deployment.ts';

/** The projections of a deployment: a version of `balance` that always stays, and those that come and go. */
export function projectionsOf({ lowest, highest }: Deployment): readonly Projection[] {
  const [, ...others] = declared(1, 1);
  const balances = Array.from({ length: highest - lowest + 1 }, (_, index) => balance(lowest + index));
  return [balance(1), ...balances.filter(({ version }) => version > 1), ...others, thingV1, ownerV1, placeV1];
}

export function configOf(deployment: Deployment, outside: pg.Pool): Config {
  return defineConfig({
    events: families,
    projections: projectionsOf(deployment),
    commands,
    reactors: reactorsOf(outside),
    auth: ({ header, connectionParams }) =>
      viewerOf(header('authorization') ?? String(connectionParams.authorization ?? '')),
    database: deployment.pooled ? { notifications: false, prepare: false } : {},
    runtime: deployment.pooled ? { ownership: 'lease' } : {},
    gateway: {
      // Clients wait longer on a machine with other work; the figures include how long.
      positionTimeout: 60_000,
      // The clients' documents are larger than an application would allow.
      maxPageSize,
      maxAliases: 1000,
      maxTokens: 20_000,
      maxDepth: 30,
      maxCost: 1e9,
    },
  });
}

/** `client tenant role`; without a tenant, a viewer who sees everything. */
function viewerOf(authorization: string): Viewer {
  const [id, tenant, role] = authorization.split(' ');
  return { id: id || null, tenant: tenant || null, roles: role ? [role] : [], claims: {}, expiresAt: null };
}

const outside = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 2 });
outside.on('error', () => {}); // a session that was terminated while idle

/** The configuration that `refold start` runs. */
export default configOf(deploymentOf(process.env), outside);
