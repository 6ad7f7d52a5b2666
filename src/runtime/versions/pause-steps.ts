import type { Database } from '../../store/postgres/database.ts';
import { writePause } from '../../store/registry/pauses.ts';
import { recordTransition } from '../../store/registry/transitions.ts';
import { expectVersion, pauseText, refused, type TransitionReason } from './expect-version.ts';
import { withoutAppends } from './leave-inline.ts';

/** Pauses and resumes versions. */
export interface PauseSteps {
  /**
   * Ends the maintenance of a version until {@link PauseSteps.resume}, in all processes and across restarts. An inline version leaves the appends.
   * The version keeps its state: one that answers goes on answering, from rows that grow stale. One that does not answer yet is not activated.
   *
   * @throws RefoldError `INVALID_TRANSITION`; `DATABASE_ERROR` with `sqlState` 55P03 if a transaction that has folded into an inline version stays
   *   open for more than five seconds
   */
  pause(name: string, version: number, step: TransitionReason): Promise<void>;
  /** Lets processes maintain the version again: they continue where it was paused. @throws RefoldError `INVALID_TRANSITION` */
  resume(name: string, version: number, step: TransitionReason): Promise<void>;
}

export function createPauseSteps(db: Database): PauseSteps {
  return {
    pause: (name, version, { actor, reason }) =>
      withoutAppends(db, { name, version }, async (tx) => {
        const { state, heldReason, ...found } = await expectVersion(tx, name, version);
        if (state === 'retired') throw refused(name, version, 'is retired: nobody maintains it.');
        if (found.pausedAt !== null) throw refused(name, version, `is paused already, ${pauseText(found)}.`);
        await writePause(tx, name, version, { by: actor, reason });
        const said = `paused: ${reason}`;
        await recordTransition(tx, { name, version, from: state, to: state, heldReason, actor, reason: said });
      }),
    resume: (name, version, { actor, reason }) =>
      db.transaction(async (tx) => {
        const { state, heldReason, pausedAt } = await expectVersion(tx, name, version);
        if (pausedAt === null) throw refused(name, version, 'is not paused.');
        await writePause(tx, name, version, null);
        const said = `resumed: ${reason}`;
        await recordTransition(tx, { name, version, from: state, to: state, heldReason, actor, reason: said });
      }),
  };
}
