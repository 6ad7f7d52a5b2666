import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { ProcessRole } from '../../store/ownership/live-processes.ts';
import { announceProcess, withdrawProcess } from '../../store/ownership/processes.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import { createRounds } from '../scheduling/rounds.ts';

/** What a process is to the others, beside the work that it shares with them. */
export interface ProcessDescription {
  /** Such as `host:4711`. */
  readonly name: string;
  readonly role: ProcessRole;
  /** The projection versions that it declares, as `cart_summary@2`. */
  readonly versions: readonly string[];
}

const announceMilliseconds = 2000;

/** A process that only answers clients tells that it lives, and which versions it declares. One that maintains something does so by its work. */
export function announcePresence(
  db: Queryable,
  described: ProcessDescription,
  logger: Logger,
): { stop(): Promise<void> } {
  const own = { id: randomUUID(), ...described, declares: [], owns: [], keeps: [] };
  const rounds = createRounds(
    announceMilliseconds,
    () => announceProcess(db, own),
    (error) => logger.debug({ err: error }, 'this process could not be announced; trying again'),
  );
  return {
    async stop() {
      await rounds.stop();
      await withdrawProcess(db, own.id).catch(() => {});
    },
  };
}
