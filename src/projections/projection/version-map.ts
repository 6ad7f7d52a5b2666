import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from './projection.ts';

export type VersionState = 'building' | 'ready' | 'active' | 'retired' | 'failed';

/** What one process serves for one projection name. */
export interface ServedVersion {
  /** The highest active version that this process declares. If none is active, the lowest declared version that is building or ready. */
  readonly projection: Projection;
  /** False while no declared version is active, or while its table cannot be read. Reads then fail with `PROJECTION_NOT_READY`. */
  readonly active: boolean;
  readonly state: VersionState;
}

/** The served version of each projection name. Immutable: an operation keeps the map that it started with. */
export interface VersionMap {
  /** Changes with every change of the map. */
  readonly revision: string;
  /** Equal for maps of which one schema can be served: of the same versions in the same tables. @default `revision` */
  readonly shape?: string;
  readonly served: ReadonlyMap<string, ServedVersion>;
  /** The versions in the map that a client requested although a higher one is active. */
  readonly deprecated?: readonly DeprecatedVersion[];
}

/** An older version that is served to clients that pin it. */
export interface DeprecatedVersion {
  readonly id: string;
  /** When the higher version became active. */
  readonly since: Date;
  /** The planned end of the version, if its declaration has one. */
  readonly sunset: Date | null;
}

/** The versions that a client requests, per projection name. */
export type Pins = ReadonlyMap<string, number>;

/** Which clients are served by a version before it is active. */
export interface CanaryRule {
  /** Percentage of the identifiable clients, 0 to 100. */
  readonly percent: number;
  /** Requests with this header and value use the canary. A null `value` matches any value. Null: no header selects it. */
  readonly header: { readonly name: string; readonly value: string | null } | null;
}

/** A ready version that serves some clients. */
export interface Canary extends CanaryRule {
  readonly name: string;
  readonly version: number;
}

/** A ready version that also runs some of the live queries, for comparison. */
export interface ShadowRule {
  readonly name: string;
  readonly version: number;
  /** Compares about one query in this many. */
  readonly oneOf: number;
  /** Distinguishes a restarted comparison from the one before. */
  readonly startedAt: string;
}

/** Ready versions that clients meet before they are active. Looked at for each operation, so its fields are plain and always of this moment. */
export interface Rollout {
  /** Those that serve some of the clients. */
  readonly canaries: readonly Canary[];
  /** Those whose answers are compared with those of the active ones. */
  readonly shadows: readonly ShadowRule[];
}

export const noRollout: Rollout = { canaries: [], shadows: [] };

/** The progress of a version. */
export interface VersionProgress {
  readonly projection: string;
  readonly version: number;
  readonly state: VersionState;
  readonly position: GlobalPosition;
  readonly head: GlobalPosition;
  /** 0 to 1. */
  readonly progress: number;
  /** Whether an operator has paused it: its position stays where it is. */
  readonly paused: boolean;
  /** The number of rows that wait for a dead letter, up to 10,000. */
  readonly heldRows: number;
}
