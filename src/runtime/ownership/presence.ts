import type { Logger } from 'pino';
import type { Config } from '../../config/define-config.ts';
import type { Maintained } from '../../config/maintained.ts';
import { payloadVersionsOf } from '../../events/payload-versions.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { declaredVersions } from '../../reactors/versioned-reactor.ts';
import type { ProcessRole } from '../../store/ownership/live-processes.ts';
import { announceProcess, type KnownVersions, withdrawProcess } from '../../store/ownership/processes.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { startPeriodicTask } from '../scheduling/periodic-task.ts';

/** How a process describes itself to other processes, beside its units. */
export interface ProcessDescription extends KnownVersions {
  /** Drawn at its start; the same in all stores. */
  readonly id: string;
  /** For example `host:4711`. */
  readonly name: string;
  readonly role: ProcessRole;
  /** The projection versions that it declares, for example `cart_summary@2`. */
  readonly versions: readonly string[];
  /** The versions that it folds, each with the fingerprint of its code. @default none */
  readonly code?: Readonly<Record<string, string>>;
  /** The kind of its ownership; null if it maintains nothing. @default null */
  readonly ownership?: string | null;
  /** The versions and reactors that it maintains. @default none */
  readonly maintains?: readonly string[];
}

/** What describes a process apart from its declarations. */
export interface DescribedProcess {
  readonly id: string;
  readonly owner: string;
  /** Whether it maintains read tables. */
  readonly maintain: boolean;
  /** Whether it answers clients. */
  readonly serves: boolean;
}

export function describeProcess(
  { id, owner, maintain, serves }: DescribedProcess,
  config: Config,
  maintained: Maintained,
): ProcessDescription {
  const { projections, families, reactors, runtime } = config;
  return {
    id,
    name: owner,
    role: maintain ? (serves ? 'all' : 'worker') : 'gateway',
    versions: (serves ? config : maintained).projections.map((one) => one.id),
    code: codeOf(projections, maintain ? maintained.projections : []),
    ownership: maintain ? runtime.ownership : null,
    maintains: maintain
      ? [...maintained.projections.map((one) => one.id), ...maintained.reactors.map((one) => one.name)]
      : [],
    payloadVersions: payloadVersionsOf(families),
    reactorVersions: declaredVersions(reactors),
  };
}

const announceMilliseconds = 2000;

/** Announces a process that only answers clients, with the versions it declares. A worker announces itself with its units instead. */
export function announcePresence(
  db: Queryable,
  described: ProcessDescription,
  logger: Logger,
): { stop(): Promise<void> } {
  const own = { ...described, declares: [], owns: [], keeps: [] };
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
function codeOf(declared: readonly Projection[], maintained: readonly Projection[]): Record<string, string> {
  const folded = [...declared.filter(({ mode }) => mode === 'inline'), ...maintained];
  return Object.fromEntries(folded.map(({ id, codeFingerprint }) => [id, codeFingerprint]));
}
