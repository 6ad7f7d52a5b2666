import { declaredFilter } from '../../events/event-names.ts';
import { globalPosition } from '../../events/global-position.ts';
import type { Column, Columns } from '../../projections/columns/column.ts';
import { createRowCodec, type Row } from '../../projections/columns/row-codec.ts';
import { uniqueIndexes } from '../../projections/columns/unique-indexes.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { StoredDefinition } from '../../store/statements/stored-json.ts';

/**
 * Creates a version that this process does not declare from its registry entry: its table and GraphQL names, without code. It is only compared,
 * never folded into. `sibling` is a declared version of the same projection.
 */
export function definedVersion(
  sibling: Projection,
  version: number,
  tableName: string,
  definition: StoredDefinition,
  declaredNames: ReadonlySet<string>,
): Projection {
  const columns = Object.fromEntries(definition.columns.map(({ name, type, flags }) => [name, { type, flags }]));
  const typed = columns as unknown as Columns; // only type and flags of a column are read; the modifiers are for declarations
  const relations = Object.entries(definition.relations ?? sibling.relations).filter(
    ([name, relation]) =>
      declaredNames.has(relation.target) &&
      !Object.hasOwn(columns, name) &&
      (typeof relation.from === 'string' ? [relation.from] : relation.from).every((from) =>
        Object.hasOwn(columns, from),
      ),
  );
  return Object.freeze({
    ...sibling,
    version,
    id: `${sibling.name}@${version}`,
    tableName,
    startAfter: globalPosition(definition.startAfter ?? '0'),
    columns: typed,
    keyColumns: definition.keyColumns,
    sqlNames: Object.fromEntries(definition.columns.map(({ name, sqlName }) => [name, sqlName])),
    graphql: definition.graphql,
    relations: Object.fromEntries(relations),
    filter: declaredFilter(sibling.families, definition.filter),
    uniqueIndexes: uniqueIndexes(typed, definition.keyColumns),
    codec: createRowCodec(typed as Readonly<Record<string, Column>>, definition.keyColumns),
    setUp: undefined,
    tearDown: undefined,
    keysOf: () => [],
    apply: (row: Row | null) => row,
  });
}
