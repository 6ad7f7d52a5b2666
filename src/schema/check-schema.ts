import type { Command } from '../commands/define-command.ts';
import type { Projection } from '../projections/projection/projection.ts';
import { buildSchema } from './build-schema.ts';
import type { SchemaExtension } from './extend-schema.ts';

/**
 * Builds the schemas that these declarations may lead to before anything starts. So a name collision is not first found by an activation.
 *
 * @throws RefoldError `INVALID_DECLARATION`
 */
export function checkSchema(
  projections: readonly Projection[],
  commands: readonly Command[],
  maxPageSize: number,
  extension?: SchemaExtension,
): void {
  const byName = [...Map.groupBy(projections, ({ name }) => name).values()].map((versions) =>
    versions.toSorted((a, b) => a.version - b.version),
  );
  const newest = byName.map((versions) => versions.at(-1) as Projection); // groups are not empty
  // Each version with the newest versions of the others, and all oldest ones together. All combinations would be too many.
  const combinations = [
    newest,
    byName.map((versions) => versions[0] as Projection), // as above
    ...projections.map((one) => newest.map((other) => (other.name === one.name ? one : other))),
  ];
  const seen = new Set<string>();
  for (const combination of combinations) {
    const revision = combination.map(({ id }) => id).join(' ');
    if (seen.has(revision)) continue;
    seen.add(revision);
    const served = new Map(
      combination.map((projection) => [projection.name, { projection, active: true, state: 'active' }] as const),
    );
    buildSchema({ versions: { revision, served }, commands, maxPageSize, extension });
  }
}
