import { onlyRow, type Queryable } from '../statements/statement.ts';

/** What a database reports about Citus. */
export interface CitusFacts {
  /** The version of the extension, such as `13.2-1`; null if the database does not have it. */
  readonly version: string | null;
  readonly isCoordinator: boolean;
  /** The number of nodes that hold shards. */
  readonly workers: number;
  /** Nodes that the cluster has disabled, such as `worker-2:5432`. */
  readonly inactive: readonly string[];
}

export async function readCitusFacts(db: Queryable): Promise<CitusFacts> {
  const versions = await db.query<{ version: string }>({
    text: `select extversion as version from pg_extension where extname = 'citus'`,
  });
  const version = versions[0]?.version ?? null;
  // Its tables exist only with the extension.
  if (version === null) return { version, isCoordinator: false, workers: 0, inactive: [] };
  const rows = await db.query<Omit<CitusFacts, 'version'>>({
    text: `
      select
        coalesce((select groupid = 0 from pg_dist_local_group), false) as "isCoordinator",
        count(*) filter (where isactive and shouldhaveshards)::int as workers,
        coalesce(array_agg(nodename || ':' || nodeport order by nodename, nodeport) filter (where not isactive), '{}') as inactive
      from pg_dist_node
      where noderole = 'primary'`,
  });
  return { version, ...onlyRow(rows) };
}

/** Why Refold can't keep a store's tables in the cluster; undefined if it can. */
export function clusterProblem({ version, isCoordinator, workers, inactive }: CitusFacts): string | undefined {
  if (version === null)
    return "it has a placement, which is for a Citus cluster, and the database does not have the extension citus. Run `create extension citus` on every node, or remove 'placement'.";
  if (Number.parseInt(version, 10) < leastVersion)
    return `Citus ${version} found; Refold needs ${leastVersion} or newer.`;
  if (!isCoordinator) return 'it is a worker of a Citus cluster. Give the URL of the coordinator.';
  if (inactive.length > 0)
    return `the Citus cluster has inactive nodes: ${inactive.join(', ')}. Activate them with \`select citus_activate_node(name, port)\`, or remove them.`;
  if (workers === 0)
    return 'the Citus cluster has no node that holds shards. Add a worker with `select citus_add_node(name, port)`.';
  return undefined;
}

/** From 12 on, Citus has tables of one shard. */
const leastVersion = 12;
