import type { Config } from '../../config/define-config.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionChange } from '../../schema/version-changes.ts';
import { answering, readDefinitionOf } from '../../store/registry/all-registries.ts';
import type { DefinedVersion } from '../../store/registry/definitions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { definedVersion } from './defined-version.ts';

/** The declarations that determine the GraphQL schema, and the events that are known. */
export type SchemaDeclarations = Pick<Config, 'projections' | 'commands' | 'families'> & {
  readonly gateway: Pick<Config['gateway'], 'maxPageSize'>;
};

/** What changes for clients if one version answers in place of another. */
export interface SchemaChanges {
  /** The version that answers at present. */
  readonly than: string;
  /** All differences, the breaking ones first. */
  readonly changes: readonly VersionChange[];
  /** For each breaking change, including derived ones, a sentence such as `CartSummary.totalAmount was removed.` */
  readonly breaking: readonly string[];
}

/**
 * Returns what clients would lose if this version became active; null if no lower version answers, or if the version's definition is
 * unknown here. Versions that are not declared here are compared by their registry entries.
 */
export async function changesForClients(
  db: Queryable,
  declarations: SchemaDeclarations,
  name: string,
  version: number,
): Promise<SchemaChanges | null> {
  const served = await answering(db, name);
  // Below a higher answering version, nothing changes for clients.
  if (!served || served.version >= version) return null;
  return changesBetween(db, declarations, name, served.version, version);
}

/** Like {@link changesForClients}, for any two versions of a projection. */
export async function changesBetween(
  db: Queryable,
  declarations: SchemaDeclarations,
  name: string,
  older: number,
  newer: number,
): Promise<SchemaChanges | null> {
  const a = await knownVersion(db, declarations.projections, name, older);
  const b = await knownVersion(db, declarations.projections, name, newer);
  if (!a || !b) return null;
  // GraphQL is imported only here, to keep it out of the start of every process.
  const { versionChanges } = await import('../../schema/version-changes.ts');
  const { projections, commands, gateway } = declarations;
  const changes = versionChanges(a, b, { projections, commands, maxPageSize: gateway.maxPageSize });
  const breaking = changes.filter(({ criticality }) => criticality === 'breaking').map(({ message }) => message);
  return { than: a.id, changes, breaking };
}

/** Returns a version as declared here, or otherwise as in the registry; undefined if no version of its projection is declared. */
export async function knownVersion(
  db: Queryable,
  projections: readonly Projection[],
  name: string,
  version: number,
): Promise<Projection | undefined> {
  const siblings = projections.filter((one) => one.name === name);
  const declared = siblings.find((one) => one.version === version);
  if (declared) return declared;
  const [sibling] = siblings;
  const definition: DefinedVersion['definition'] | undefined = sibling && (await readDefinitionOf(db, name, version));
  if (!sibling || !definition) return undefined;
  return definedVersion(
    sibling,
    version,
    `${name}_v${version}`,
    definition,
    new Set(projections.map((one) => one.name)),
  );
}
