import { beginning } from '../../events/global-position.ts';
import type { Reactor } from '../../reactors/reactor.ts';
import { newestOf, versionedReactors } from '../../reactors/versioned-reactor.ts';
import { readHead } from '../../store/log/horizon.ts';
import type { Database } from '../../store/postgres/database.ts';
import { insertReactorVersion } from '../../store/reactors/reactor-versions.ts';
import { insertReactor, insertReactorOperation } from '../../store/reactors/reactors.ts';
import { findUndeclaredVersions } from './reactor-versions.ts';

/**
 * Gives each newly declared reactor its first checkpoint: before the first event of the log, or at the head. It begins with its newest version.
 *
 * @returns warnings for the operator, as sentences
 */
export async function registerReactors(
  db: Database,
  reactors: readonly Reactor[],
  actor: string,
): Promise<readonly string[]> {
  if (reactors.length === 0) return [];
  await db.transaction(async (tx) => {
    for (const reactor of versionedReactors(reactors)) {
      const { name, from } = reactor;
      const checkpoint = from === 'beginning' ? beginning : await readHead(tx);
      if (!(await insertReactor(tx, name, checkpoint))) continue;
      const { version } = newestOf(reactor);
      if (version > 1) await insertReactorVersion(tx, name, { version, after: beginning });
      const reason = `declared, from the ${from === 'beginning' ? 'beginning' : 'head of the log'}`;
      await insertReactorOperation(tx, {
        reactor: name,
        operation: 'declared',
        from: null,
        to: checkpoint,
        actor,
        reason,
      });
    }
  });
  return (await findUndeclaredVersions(db, reactors)).map(({ message }) => message);
}
