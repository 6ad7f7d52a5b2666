import { RefoldError } from '../../errors.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { holdingReason, type WithBreakingRule } from './change-usage.ts';
import { changesForClients, type SchemaDeclarations } from './schema-changes.ts';

/** Returns which changes of a version would break clients, and which clients use them; null if none would, or the declaration allows it. */
export async function wouldBreak(
  tx: Queryable,
  declarations: SchemaDeclarations,
  projection: WithBreakingRule,
): Promise<{ readonly what: string; readonly breaking: readonly string[] } | null> {
  if (projection.activation.breaking === 'allow') return null;
  const changes = await changesForClients(tx, declarations, projection.name, projection.version);
  const reason = changes && (await holdingReason(tx, projection, changes));
  return reason === null ? null : { what: `clients of ${changes?.than}: ${reason}`, breaking: changes?.breaking ?? [] };
}

/** @throws RefoldError `INVALID_TRANSITION`, with the changes in `fields.breaking` */
export async function refuseBreaking(
  tx: Queryable,
  declarations: SchemaDeclarations,
  name: string,
  version: number,
): Promise<void> {
  const declared = declarations.projections.find((one) => one.name === name && one.version === version);
  const broken = await wouldBreak(tx, declarations, declared ?? { name, version, activation: { breaking: 'hold' } });
  if (!broken) return;
  throw new RefoldError(
    'INVALID_TRANSITION',
    `${name}@${version} would break ${broken.what} Say --breaking (allowBreaking) if that is meant.`,
    { name, version, breaking: broken.breaking },
  );
}
