import type { Registry } from 'prom-client';
import type { Admin } from './admin/create-admin.ts';
import type { Config } from './config/define-config.ts';
import { isDistributedIn } from './config/read-store-options.ts';
import type { Gateway } from './gateway/create-gateway.ts';
import type { HealthServer } from './gateway/http/health-server.ts';
import type { Projection } from './projections/projection/projection.ts';
import type { VersionMap } from './projections/projection/version-map.ts';
import type { ResponseQuery } from './projections/queries/response-query.ts';
import type { Runtime } from './runtime/runtime.ts';
import type { SchemaExtension } from './schema/extend-schema.ts';

// What answers requests of a process. Loaded on demand, because a worker needs none of GraphQL.

/** Answers probes and scrapes of a worker, until everything else has stopped. */
export async function openHealth(
  config: Config,
  runtime: Runtime,
  registry: Registry,
): Promise<HealthServer | undefined> {
  const { healthPort: port } = config.runtime;
  if (port === undefined) return undefined;
  const { serveHealth } = await import('./gateway/http/health-server.ts');
  const { createRuntimeMetrics } = await import('./runtime/monitoring/metrics.ts');
  const { problems, storeProblems } = runtime;
  const metrics = createRuntimeMetrics(runtime, registry);
  return serveHealth({ host: config.gateway.host, port, problems, storeProblems, metrics });
}

/** Undefined if it is not configured. */
export async function openAdmin(
  declared: { readonly config: Config },
  runtime: Runtime,
  url: string,
  name: string,
): Promise<Admin | undefined> {
  const { admin } = declared.config.gateway;
  if (!admin) return undefined;
  const { createAdmin } = await import('./admin/create-admin.ts');
  return createAdmin({
    get config() {
      return declared.config;
    },
    ...{ admin, runtime, url, process: name, logger: runtime.logger },
  });
}

export async function openGateway(
  declared: { readonly config: Config },
  runtime: Runtime,
  registry: Registry,
  admin: Admin | undefined,
  options: { readonly development: boolean; readonly defaultQuery?: string },
): Promise<Gateway> {
  const { config } = declared;
  const { createGateway } = await import('./gateway/create-gateway.ts');
  const { serveAdminPage } = await import('./gateway/http/admin-page.ts');
  const { createRuntimeMetrics } = await import('./runtime/monitoring/metrics.ts');
  return createGateway({
    services: {
      versions: runtime.versions,
      openReadModels: (readOptions) => runtime.readModels.open(readOptions),
      ...(config.gateway.compiledQueries
        ? { answer: (query: ResponseQuery, of: VersionMap) => runtime.readModels.answer(query, of) }
        : {}),
      ...(Object.values(config.readStores).some(({ placement }) => placement === 'partition')
        ? { executes: (projection: Projection) => isDistributedIn(declared.config.readStores, projection) }
        : {}),
      execute: runtime.execute,
      checkToken: runtime.checkToken,
      live: runtime.live,
      lookAtTables: runtime.lookAtTables,
      shadows: { record: runtime.recordShadow },
      problems: runtime.problems,
      storeProblems: runtime.storeProblems,
      lost: () => runtime.readModelsServed?.lost() ?? [],
      ...(runtime.canaries ? { canaries: runtime.canaries } : {}),
      ...(runtime.usage && config.gateway.fieldUsage ? { usage: runtime.usage } : {}),
    },
    options: config.gateway,
    get commands() {
      return declared.config.commands;
    },
    get auth() {
      return declared.config.auth;
    },
    get extension() {
      return declared.config.schema as SchemaExtension | undefined; // `kind` says that extendSchema created it
    },
    development: options.development,
    drainSeconds: config.gateway.drainSeconds ?? 0,
    logger: runtime.logger,
    metrics: createRuntimeMetrics(runtime, registry),
    ...(admin ? { admin: [admin.handler, serveAdminPage()] } : {}),
    ...(options.defaultQuery === undefined ? {} : { defaultQuery: options.defaultQuery }),
  });
}
