import { GraphQLError, GraphQLScalarType, type GraphQLSchema, printSchema } from 'graphql';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import { columnSelection } from '../analysis/selected-columns.ts';
import type { Builder } from '../builder/builder.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { badInput, keyArgument } from '../values/canonical-input.ts';
import { beforeRead } from './before-read.ts';

/** Identifies an entity for a gateway: its type and its key. */
type Representation = Readonly<Record<string, unknown>> & { readonly __typename: string };

// A gateway requests all entities of one step of its plan at once.
const maxRepresentations = 1000;

/**
 * Makes the schema a subgraph of Apollo Federation 2: the row types are entities by their keys, which gateways look up in batches. The
 * specification: https://www.apollographql.com/docs/graphos/schema-design/federated-schemas/reference/subgraph-spec
 *
 * @returns a function that sets the SDL from the built schema
 */
export function addFederation(
  builder: Builder,
  projections: readonly ProjectionTypes[],
): (schema: GraphQLSchema) => void {
  let sdl = '';
  addService(builder, () => sdl);
  if (projections.length > 0) addEntities(builder, projections);
  return (schema) => {
    sdl = subgraphSdl(schema, projections);
  };
}

function addService(builder: Builder, sdl: () => string): void {
  const service = builder.objectRef<object>('_Service').implement({
    description: 'The subgraph, for a federated gateway.',
    fields: (t) => ({ sdl: t.string({ description: 'The schema of the subgraph.', resolve: sdl }) }),
  });
  builder.queryField('_service', (t) =>
    t.field({ type: service, description: 'The subgraph of Apollo Federation.', resolve: () => ({}) }),
  );
}

function addEntities(builder: Builder, projections: readonly ProjectionTypes[]): void {
  const typeOf = new WeakMap<object, string>();
  const any = new GraphQLScalarType<unknown>({
    name: '_Any',
    description: 'An entity, represented by its type and its key.',
  });
  builder.addScalarType('_Any' as never, any as never); // the builder's type knows only its own scalars
  const entity = builder.unionType('_Entity', {
    description: 'A row that a gateway can look up.',
    types: projections.map(({ row }) => row),
    resolveType: (row) => typeOf.get(row) ?? null,
  });
  const byType = new Map(
    projections.map((types) => [
      types.projection.graphql.type,
      { ...types, columnsOf: columnSelection(types.projection, [[]]) },
    ]),
  );
  builder.queryField('_entities', (t) =>
    t.field({
      type: [entity],
      nullable: { list: false, items: true },
      description: 'The rows of these representations, in the same order. Null if there is none.',
      args: {
        representations: t.arg({
          type: ['_Any' as never],
          required: true,
          description: 'The type and the key of each entity.',
        }),
      },
      async resolve(root, args, context, info): Promise<(Row | null)[]> {
        const representations = args.representations as readonly Representation[]; // any value; checked below
        if (representations.length > maxRepresentations)
          throw badInput(
            `'representations' names ${representations.length} entities; the limit is ${maxRepresentations}.`,
          );
        return Promise.all(
          representations.map(async (representation) => {
            const types = byType.get(representation?.__typename);
            if (!types)
              throw new GraphQLError(`'${representation?.__typename}' is not an entity of this API.`, {
                extensions: { code: 'BAD_USER_INPUT' },
              });
            const waiting = beforeRead(types.served, context, root?.after, info);
            if (waiting) await waiting;
            const key = keyIn(types.projection, representation);
            const [row] = await context.readModels.findByKeys(types.projection, [key], types.columnsOf(info));
            if (!row) return null;
            typeOf.set(row, representation.__typename);
            return row;
          }),
        );
      },
    }),
  );
}

function keyIn(projection: Projection, representation: Representation): RowKey {
  const missing = projection.keyColumns.find(
    (name) => representation[name] === undefined || representation[name] === null,
  );
  if (missing !== undefined)
    throw badInput(`An entity '${representation.__typename}' is named by '${missing}', among others.`);
  return keyArgument(projection, representation);
}

/** Returns the schema with the directives of federation, without the types that federation adds: gateways know those. */
function subgraphSdl(schema: GraphQLSchema, projections: readonly ProjectionTypes[]): string {
  const keys = new Map(projections.map(({ projection }) => [projection.graphql.type, projection.keyColumns.join(' ')]));
  const sdl = printSchema(schema)
    .replace(/(?:"""[^"]*"""\n)?(?:scalar _Any|union _Entity = .*|type _Service \{[^}]*\})\n*/g, '')
    .replace(/\n*^ {2}"""[^"]*"""\n {2}(?:_service: _Service!|_entities\([^)]*\): \[_Entity\]!)$/gm, '')
    .replace(/^type (\w+)(?: implements [\w &]+)?/gm, (line, name: string) => {
      const key = keys.get(name);
      if (key !== undefined) return `${line} @key(fields: "${key}")`;
      return shared.has(name) ? `${line} @shareable` : line;
    })
    // Hidden from gateways: each subgraph has its own `_meta`, and a payload's query leads only to this subgraph.
    .replace(/^( {2}_meta: Meta!)$/m, '$1 @shareable @inaccessible')
    .replace(/^( {2}query: Query)$/gm, '$1 @inaccessible')
    // A gateway cannot tell from an id which subgraph it belongs to.
    .replace(/^( {2}nodes?\([^)]*\): (?:Node|\[Node\]!))$/gm, '$1 @shareable @inaccessible');
  return [link, ...(sdl.includes(' @oneOf') ? [oneOf] : []), sdl].join('\n\n').concat('\n');
}

const link =
  'extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable", "@inaccessible"])';

// GraphQL defines it by itself since September 2025, but Apollo's composition refuses an SDL that uses it without a definition.
const oneOf = '"""Exactly one of the fields must be given."""\ndirective @oneOf on INPUT_OBJECT';

/** Types that every Refold application has. */
const shared: ReadonlySet<string> = new Set(['PageInfo', 'Meta', 'ProjectionStatus']);
