import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ProcessRole } from '../../store/ownership/live-processes.ts';
import { announceProcess, type KnownVersions, withdrawProcess } from '../../store/ownership/processes.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { startPeriodicTask } from '../scheduling/periodic-task.ts';

/** How a process describes itself to other processes, beside its units. */
export interface ProcessDescription extends KnownVersions {
  /** For example `host:4711`. */
  readonly name: string;
  readonly role: ProcessRole;
  /** The projection versions that it declares, for example `cart_summary@2`. */
  readonly versions: readonly string[];
  /** The versions that it folds, each with the fingerprint of its code. @default none */
  readonly code?: Readonly<Record<string, string>>;
}

const announceMilliseconds = 2000;

/** Announces a process that only answers clients, with the versions it declares. A worker announces itself with its units instead. */
export function announcePresence(
  db: Queryable,
  described: ProcessDescription,
  logger: Logger,
): { stop(): Promise<void> } {
  const own = { id: randomUUID(), ...described, declares: [], owns: [], keeps: [] };
  const task = startPeriodicTask(
    announceMilliseconds,
    async () => void (await announceProcess(db, own)),
    (error) => logger.debug({ err: error }, 'this process could not be announced; trying again'),
  );
  return {
    async stop() {
      await task.stop();
      await withdrawProcess(db, own.id).catch(() => {});
    },
  };
}

/** The fingerprints of the code that a process folds with. Its appends fold into all inline versions. */
export function codeOf(declared: readonly Projection[], maintained: readonly Projection[]): Record<string, string> {
  const folded = [...declared.filter(({ mode }) => mode === 'inline'), ...maintained];
  return Object.fromEntries(folded.map(({ id, codeFingerprint }) => [id, codeFingerprint]));
}
