import { invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { Builder } from './builder/builder.ts';
import { computedFrom } from './builder/computed-fields.ts';
import type { TypeNames } from './builder/type-names.ts';
import type { SchemaExtension, SchemaTools } from './extend-schema.ts';
import { readModelTools } from './fields/read-model-tools.ts';
import type { ProjectionTypes } from './types/projection-types.ts';

export interface ExtendedParts {
  readonly builder: Builder;
  readonly names: TypeNames;
  readonly projections: readonly ProjectionTypes[];
  readonly maxPageSize: number;
}

/** @throws RefoldError `INVALID_DECLARATION` if it is asynchronous, or extends a projection or uses a column that does not exist */
export function applyExtension({ extend }: SchemaExtension, parts: ExtendedParts): void {
  const { builder, names, projections, maxPageSize } = parts;
  const typesOf = (name: string): ProjectionTypes => {
    const found = projections.find(({ projection }) => projection.name === name);
    if (found) return found;
    const known = projections.map(({ projection }) => projection.name);
    throw invalidDeclaration('extendSchema', `there is no projection '${name}'.${closest(name, known)}`);
  };
  const result = extend({
    builder: builder as unknown as SchemaTools['builder'], // the same builder; the types differ in what the application adds
    readModel: (name) => readModelTools(builder, typesOf(name), maxPageSize),
    rowField(name, field, needs, make) {
      const types = typesOf(name);
      checkRowField(types, field, needs);
      computedFrom(types.projection, names.claimField(types.projection.graphql.type, field, ownerOf(field)), needs);
      builder.objectField(types.row, field, make as never); // as above
    },
  });
  if (result instanceof Promise) {
    result.catch(() => {}); // it is refused whatever becomes of it
    throw invalidDeclaration(
      'extendSchema',
      'its function returned a promise. Await what it needs before the configuration is defined, and add everything synchronously.',
    );
  }
}

function checkRowField({ projection }: ProjectionTypes, field: string, needs: readonly string[]): void {
  if (Object.hasOwn(projection.columns, field) || Object.hasOwn(projection.relations, field))
    throw invalidDeclaration(ownerOf(field), `${projection.id} has a column or relation of that name already.`);
  for (const column of needs) {
    if (!Object.hasOwn(projection.columns, column))
      throw invalidDeclaration(
        ownerOf(field),
        `${projection.id} has no column '${column}'.${closest(column, Object.keys(projection.columns))} Every version that may answer has to have it.`,
      );
  }
}

function ownerOf(field: string): string {
  return `extendSchema, field '${field}'`;
}
