import { type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import { type BegunReactor, type BegunVersion, begunReactor } from '../../reactors/begun-reactor.ts';
import { newestOf, type VersionedReactor } from '../../reactors/versioned-reactor.ts';
import { readDeclaringProcesses } from '../../store/ownership/live-processes.ts';
import type { Database } from '../../store/postgres/database.ts';
import { expectClaim, type ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { deleteReactorAttempts, fenceReactorAttempts } from '../../store/reactors/reactor-attempts.ts';
import { wakeInstances } from '../../store/reactors/reactor-instances.ts';
import {
  deleteReactorVersion,
  insertReactorVersion,
  readBegunVersions,
} from '../../store/reactors/reactor-versions.ts';
import { insertReactorOperation, setReactorCheckpoint } from '../../store/reactors/reactors.ts';
import { silentSeconds } from '../../store/server/running-processes.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/**
 * Finds out which version handles which events. If the newest declared version has not begun, it begins now, with the first event of which no
 * handler has run: all earlier ones stay with their versions.
 *
 * This happens once this process owns the reactor, not when it starts: until then, the owner may lack the new version, and it decides alone
 * what it handles.
 *
 * @throws RefoldError `PROCESSOR_FENCED` if another process owns the reactor by now
 */
export async function beginNewestVersion(
  db: Database,
  claim: ProcessorClaim,
  reactor: VersionedReactor,
  actor: string,
): Promise<BegunReactor> {
  const { name } = reactor;
  const { version } = newestOf(reactor);
  const begun = await readBegunVersions(db, name);
  if (begun.some((one) => one.version >= version)) return begunReactor(reactor, begun);
  await db.transaction(async (tx) => {
    await expectClaim(tx, claim);
    // A former owner that is only stalled must not begin another event on an earlier version.
    const handled = await fenceReactorAttempts(tx, name);
    const after = [claim.checkpoint, handled, ...afterOf(begun)].reduce(laterPosition);
    await insertReactorVersion(tx, name, { version, after });
    await insertReactorOperation(tx, {
      reactor: name,
      operation: 'version begun',
      from: claim.checkpoint,
      to: claim.checkpoint,
      actor,
      reason: `version ${version} is declared; it handles the events after position ${after}`,
    });
  });
  return begunReactor(reactor, await readBegunVersions(db, name));
}

function afterOf(begun: readonly BegunVersion[]): readonly GlobalPosition[] {
  return begun.map(({ after }) => after);
}

/**
 * Takes back the newest version: the one below handles its events. The transaction must have locked the reactor's row.
 *
 * @returns why it is not possible; undefined if it is done
 */
export async function withdrawVersion(
  tx: Queryable,
  name: string,
  version: unknown,
  checkpoint: GlobalPosition,
): Promise<string | undefined> {
  const begun = await readBegunVersions(tx, name);
  const newest = begun.at(-1);
  if (newest === undefined || newest.version !== version)
    return `has version ${newest?.version} as its newest; only that one can be withdrawn.`;
  if (begun.length === 1) return `has no version below ${version}.`;
  const running = await readDeclaringProcesses(tx, name, newest.version);
  if (running.length > 0)
    return `has version ${version} in ${running.join(', ')}. Stop this first; a process that was killed counts as running for ${silentSeconds} seconds.`;
  await deleteReactorVersion(tx, name, newest.version);
  await wakeInstances(tx, name, newest.after); // the version below may wait for something else
  await deleteReactorAttempts(tx, name);
  // Fences an owner that is only stalled: it must not begin another event on the version.
  await setReactorCheckpoint(tx, name, checkpoint);
  await fenceReactorAttempts(tx, name);
  return undefined;
}
