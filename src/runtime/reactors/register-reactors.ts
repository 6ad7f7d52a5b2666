import { beginning } from '../../events/global-position.ts';
import type { Reactor } from '../../reactors/reactor.ts';
import { readHead } from '../../store/log/horizon.ts';
import type { Database } from '../../store/postgres/database.ts';
import { insertReactor, insertReactorStep } from '../../store/reactors/reactors.ts';

/** Gives each newly declared reactor its first checkpoint: before the first event of the log, or at the head. */
export async function registerReactors(db: Database, reactors: readonly Reactor[], actor: string): Promise<void> {
  if (reactors.length === 0) return;
  await db.transaction(async (tx) => {
    for (const { name, from } of reactors) {
      const checkpoint = from === 'beginning' ? beginning : await readHead(tx);
      if (!(await insertReactor(tx, name, checkpoint))) continue;
      const reason = `declared, from the ${from === 'beginning' ? 'beginning' : 'head of the log'}`;
      await insertReactorStep(tx, { reactor: name, step: 'declared', from: null, to: checkpoint, actor, reason });
    }
  });
}
