import type { GraphQLSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { noRollout, type Pins, type VersionMap } from '../../projections/projection/version-map.ts';
import { buildSchema, type SchemaOptions } from '../../schema/build-schema.ts';
import { headerOf, type TransportContext } from '../requests/transport-context.ts';
import type { CanaryContext } from '../rollout/canary.ts';
import { deprecationHeaders, noPins, pinsOf } from '../rollout/pins.ts';
import type { GatewayServices } from './gateway-services.ts';

/** A version map and the schema built from it. An operation uses one of them from start to end. */
export interface ServedSchema {
  readonly versions: VersionMap;
  readonly schema: GraphQLSchema;
  readonly pins: Pins;
  /** The canaries among the versions, such as `cart_summary@2`. */
  readonly canaries: readonly string[];
}

export interface SchemaSource {
  current(): ServedSchema;
  /** The schema with the client's pins, and otherwise with the given canaries. @throws RefoldError `BAD_USER_INPUT` */
  pinned(pins: Pins, canaries?: Pins): ServedSchema;
  close(): void;
}

export interface SchemaSourceOptions {
  readonly versions: GatewayServices['versions'];
  /** Returns what else is in the schema, at the time when it is built. */
  readonly options: () => Omit<SchemaOptions, 'versions'>;
  readonly logger: Logger;
}

// An activation and its rollback alternate between two schemas, and clients pin older versions. Validated documents are cached with the
// schema.
const keptSchemas = 12;

/**
 * Follows the version map and builds each map's schema once, before the first operation needs it. Maps that differ only in what is active share a
 * schema: with hundreds of read models, which become active one by one, it takes most of a second, and the process answers nobody meanwhile.
 */
export function createSchemaSource({ versions, options, logger }: SchemaSourceOptions): SchemaSource {
  const { rollout = noRollout } = versions;
  const built = new LRUCache<string, GraphQLSchema>({ max: keptSchemas });
  let current = serve(versions.current());

  function serve(map: VersionMap, pins: Pins = noPins, canaries: readonly string[] = []): ServedSchema {
    const shape = map.shape ?? map.revision;
    const schema = built.get(shape) ?? buildSchema({ versions: map, ...options() });
    built.set(shape, schema);
    return { versions: map, schema, pins, canaries };
  }

  const unsubscribe = versions.onChange(() => {
    const map = versions.current();
    if (map.revision === current.versions.revision) return;
    try {
      current = serve(map);
    } catch (error) {
      // The previous versions are still maintained: a response from them is better than none.
      logger.error(
        { err: error, revision: map.revision },
        'could not build a schema for the new versions; still serving the old ones',
      );
    }
  });

  return {
    current: () => current,
    pinned(pins, chosen = noPins) {
      // A canary may have ended since it was chosen.
      const canaries = (chosen.size > 0 ? rollout.canaries : []).filter(
        ({ name, version }) => chosen.get(name) === version && !pins.has(name),
      );
      if (pins.size === 0 && canaries.length === 0) return current;
      const all = new Map([...pins, ...canaries.map(({ name, version }) => [name, version] as const)]);
      return serve(
        versions.pinned(all),
        pins,
        canaries.map(({ name, version }) => `${name}@${version}`),
      );
    },
    close: unsubscribe,
  };
}

/** What {@link useServedSchema} adds to an operation's context. */
export interface ServedSchemaContext {
  readonly served: ServedSchema;
}

/** The response headers that describe the versions behind an answer. */
export function versionHeaders({ versions, canaries }: ServedSchema): readonly (readonly [string, string])[] {
  const deprecation = deprecationHeaders(versions);
  return canaries.length === 0 ? deprecation : [...deprecation, ['refold-canary', canaries.join(', ')]];
}

/**
 * Sets the current schema and its version map for each operation; or those of the versions that the client pins (`refold-pin`), with
 * headers that say when they were deprecated and when they will be removed.
 */
export function useServedSchema(
  source: SchemaSource,
): Plugin<TransportContext & CanaryContext & Partial<ServedSchemaContext>> {
  const servedBy = new WeakMap<object, ServedSchema>();
  return {
    onEnveloped({ context, setSchema, extendContext }) {
      const pins = pinsOf(context ? headerOf(context, 'refold-pin') : undefined);
      const served = source.pinned(pins, context?.canaries);
      if (context?.request && served !== source.current()) servedBy.set(context.request, served);
      setSchema(served.schema);
      extendContext({ served });
    },
    onResponse({ request, response }) {
      const served = servedBy.get(request);
      if (!served) return;
      for (const [name, value] of versionHeaders(served)) response.headers.set(name, value);
    },
  };
}
