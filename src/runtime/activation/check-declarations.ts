import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readAllRegistries } from '../../store/registry/all-registries.ts';
import type { RegisteredVersion } from '../../store/registry/registry.ts';
import { readTableProblems } from '../../store/tables/table-problems.ts';
import {
  codeChangedMessage,
  endingRules,
  removedVersions,
  tableChangedMessage,
} from '../registration/changed-declaration.ts';
import { holdingReason, whatBreaks } from '../schema-changes/change-usage.ts';
import { changesForClients, type SchemaDeclarations } from '../schema-changes/schema-changes.ts';
import { damageError, missingIndexesText } from '../versions/table-watch.ts';
import { checkLoggedNames } from '../versions/undeclared-events.ts';

/** A difference between the declarations and the database. */
export interface Finding {
  /** `problem`: a start would refuse it, or serve rows built by other code. `note`: what a start will do. */
  readonly kind: 'problem' | 'note';
  /** What differs, and what to do. */
  readonly message: string;
}

/** Compares the declarations with the registry, as a start of the application would. Changes nothing. */
export async function checkStoredDeclarations(db: Database, declarations: SchemaDeclarations): Promise<Finding[]> {
  const stores = [db, ...(db.elsewhere?.others() ?? [])];
  const registered = await readAllRegistries(db);
  const findings = [...(await namesInLog(db, declarations)), ...removed(registered, declarations.projections)];
  for (const message of await endingRules(db, registered, declarations.projections))
    findings.push({ kind: 'note', message });
  for (const problem of (await Promise.all(stores.map(readTableProblems))).flat()) {
    const damage = damageError(problem);
    findings.push(
      damage ? { kind: 'problem', message: damage.message } : { kind: 'note', message: missingIndexesText(problem) },
    );
  }
  for (const projection of declarations.projections) {
    const { id, name, version } = projection;
    const known = registered.find((entry) => entry.name === name && entry.version === version);
    if (!known) findings.push({ kind: 'note', message: `${id} is new: it will be built when it is deployed.` });
    else if (known.state === 'retired')
      findings.push({ kind: 'note', message: `${id} is retired. Remove its declaration.` });
    else if (known.tableFingerprint !== projection.tableFingerprint)
      findings.push({ kind: 'problem', message: tableChangedMessage(projection, known) });
    else if (known.codeFingerprint !== projection.codeFingerprint)
      findings.push({ kind: 'problem', message: codeChangedMessage(projection) });
    if (known?.heldBy === 'dead-letters' || known?.heldBy === 'verification' || known?.heldBy === 'partial')
      findings.push({ kind: 'note', message: `${id} is held at ready: ${known.heldReason}` });
    // Only a note, because the deployment being checked may fix it.
    if (known?.state === 'failed' && known.error && known.error.code !== 'TABLE_ALTERED')
      findings.push({ kind: 'note', message: `${id} has failed: ${known.error.message}` });
    if (known?.state === 'active' || known?.state === 'retired') continue;
    const changes = await changesForClients(db, declarations, name, version);
    if (!changes || changes.breaking.length === 0) continue;
    const reason = await holdingReason(db, projection, changes);
    const soItIs =
      reason !== null
        ? 'will be held at ready'
        : projection.activation.breaking === 'allow'
          ? 'is declared to do so'
          : 'may do so: no client has used what breaks in the days that it declares';
    findings.push({
      kind: 'note',
      message: `${id} would break clients of ${changes.than}, so it ${soItIs}: ${reason ?? whatBreaks(name, version, changes)}`,
    });
  }
  return findings;
}

async function namesInLog(db: Database, { families }: SchemaDeclarations): Promise<Finding[]> {
  try {
    const message = await checkLoggedNames(db, families);
    return message === undefined ? [] : [{ kind: 'note', message }];
  } catch (error) {
    if (!(error instanceof RefoldError) || error.code !== 'INVALID_DECLARATION') throw error;
    return [{ kind: 'problem', message: error.message }];
  }
}

function removed(registered: readonly RegisteredVersion[], projections: readonly Projection[]): Finding[] {
  return [...Map.groupBy(registered, ({ name }) => name).values()].flatMap((versions): Finding[] => {
    try {
      return removedVersions(versions, projections).map((message) => ({ kind: 'note', message }));
    } catch (error) {
      if (!(error instanceof RefoldError) || error.code !== 'PROJECTION_REMOVED') throw error;
      return [{ kind: 'problem', message: error.message }];
    }
  });
}
