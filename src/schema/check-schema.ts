import type { GraphQLSchema } from 'graphql';
import type { Config } from '../config/define-config.ts';
import { invalidDeclaration } from '../errors.ts';
import type { Projection } from '../projections/projection/projection.ts';
import type { VersionMap } from '../projections/projection/version-map.ts';
import { reasonOf } from '../thrown.ts';
import { schemaDiff } from './analysis/schema-diff.ts';
import { buildSchema, schemaOptionsOf } from './build-schema.ts';

/**
 * Builds the schemas that these declarations may lead to before anything starts. So a name collision is not first found by an activation.
 *
 * @throws RefoldError `INVALID_DECLARATION`
 */
export function checkSchema(config: Config): void {
  const { projections } = config;
  const options = schemaOptionsOf(config);
  const byName = [...Map.groupBy(projections, ({ name }) => name).values()].map((versions) =>
    versions.toSorted((a, b) => a.version - b.version),
  );
  const newest = byName.map((versions) => versions.at(-1) as Projection); // groups are not empty
  // Each version beside the newest version of each other projection, and all oldest ones together. All combinations would be too many.
  const combinations = [
    newest,
    byName.map((versions) => versions[0] as Projection), // as above
    ...olderBesideNewest(byName),
  ];
  const versions = new Map(combinations.map(versionMapOf).map((map) => [map.revision, map]));
  for (const [index, map] of [...versions.values()].entries()) {
    const schema = buildSchema({ ...options, versions: map });
    if (options.extension && index === 0) checkRepeatable(schema, () => buildSchema({ ...options, versions: map }));
  }
}

/**
 * Combinations in which each older version is beside the newest version of each other projection: one by one, or with hundreds of projections,
 * half of them at a time. Any two projections differ in a binary digit of their places, so some half has the one and not the other.
 */
function olderBesideNewest(byName: readonly (readonly Projection[])[]): readonly (readonly Projection[])[] {
  const newest = byName.map((versions) => versions.at(-1) as Projection); // groups are not empty
  const places = byName.map((_, place) => place);
  const digits = Math.max(1, Math.ceil(Math.log2(byName.length)));
  const deepest = Math.max(1, ...byName.map(({ length }) => length));
  const withOlder = (age: number, isOlder: (place: number) => boolean) =>
    places.map((place) => ((isOlder(place) && byName[place]?.at(-1 - age)) || newest[place]) as Projection); // one for each place
  const ages = Array.from({ length: deepest - 1 }, (_, index) => index + 1);
  const halves = ages.flatMap((age) =>
    Array.from({ length: 2 * digits }, (_, half) =>
      withOlder(age, (place) => ((place >> (half >> 1)) & 1) === (half & 1)),
    ),
  );
  const each = places.flatMap((one) =>
    ages.filter((age) => byName[one]?.at(-1 - age)).map((age) => withOlder(age, (place) => place === one)),
  );
  return each.length <= halves.length ? each : halves;
}

function versionMapOf(combination: readonly Projection[]): VersionMap {
  return {
    revision: combination.map(({ id }) => id).join(' '),
    served: new Map(
      combination.map((projection) => [projection.name, { projection, active: true, state: 'active' }] as const),
    ),
  };
}

/** Each activation builds a schema: an extension that then fails, or adds something else, must be found at the start. */
function checkRepeatable(first: GraphQLSchema, buildAgain: () => GraphQLSchema): void {
  const [change] = schemaDiff(first, repeated(buildAgain));
  if (change) throw notRepeatable(`it added something else when it was called again: ${change.message}`);
}

function repeated(buildAgain: () => GraphQLSchema): GraphQLSchema {
  try {
    return buildAgain();
  } catch (cause) {
    const reason = reasonOf(cause).replace(/^extendSchema: /, '');
    throw notRepeatable(`it worked, but not when it was called again: ${reason}`);
  }
}

function notRepeatable(problem: string): Error {
  const wayOut =
    'It is called for each schema, such as at an activation. Create everything inside of its function, and depend on nothing that changes.';
  return invalidDeclaration('extendSchema', `${problem} ${wayOut}`);
}
