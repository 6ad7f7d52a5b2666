import type { GraphQLSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Command } from '../commands/define-command.ts';
import type { VersionMap } from '../projections/version-map.ts';
import { buildSchema } from '../schema/build-schema.ts';
import type { GatewayServices } from './gateway-services.ts';

/** A version map and the schema made of it: what one operation works with from its start to its end. */
export interface ServedSchema {
  readonly versions: VersionMap;
  readonly schema: GraphQLSchema;
}

export interface SchemaSource {
  current(): ServedSchema;
  close(): void;
}

export interface SchemaSourceOptions {
  readonly versions: GatewayServices['versions'];
  readonly commands: readonly Command[];
  readonly maxPageSize: number;
  readonly logger: Logger;
}

// An activation and its rollback go back and forth between two; clients' validated documents come back with the schema.
const keptSchemas = 4;

/** Follows the version map: builds the schema of each once, before the first operation asks for it. */
export function createSchemaSource({ versions, commands, maxPageSize, logger }: SchemaSourceOptions): SchemaSource {
  const built = new LRUCache<string, ServedSchema>({ max: keptSchemas });
  let current = serve(versions.current());

  function serve(map: VersionMap): ServedSchema {
    const known = built.get(map.revision);
    if (known) return known;
    const served = { versions: map, schema: buildSchema({ versions: map, commands, maxPageSize }) };
    built.set(map.revision, served);
    return served;
  }

  const unsubscribe = versions.onChange(() => {
    const map = versions.current();
    if (map.revision === current.versions.revision) return;
    try {
      current = serve(map);
    } catch (error) {
      // The versions that were served are still kept current: an old answer is better than none.
      logger.error(
        { err: error, revision: map.revision },
        'no schema could be made of the new versions; the old ones go on answering',
      );
    }
  });

  return { current: () => current, close: unsubscribe };
}

/** What {@link useServedSchema} leaves in an operation's context. */
export interface ServedSchemaContext {
  readonly served: ServedSchema;
}

/** Gives each operation the schema of the moment, together with the version map that it was made of. */
export function useServedSchema(source: SchemaSource): Plugin<Partial<ServedSchemaContext>> {
  return {
    onEnveloped({ setSchema, extendContext }) {
      const served = source.current();
      setSchema(served.schema);
      extendContext({ served });
    },
  };
}
