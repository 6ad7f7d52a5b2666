import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from './projection.ts';

export type VersionState = 'building' | 'ready' | 'active' | 'retired' | 'failed';

/** What one process serves for one projection name. */
export interface ServedVersion {
  /** The highest active version that this process declares; where none is active, the lowest declared one that is on its way. */
  readonly projection: Projection;
  /** False while no declared version is active, or its table can't be read: reads answer `PROJECTION_NOT_READY`. */
  readonly active: boolean;
  readonly state: VersionState;
}

/** Which version answers, per projection name. Immutable: an operation keeps the map that it started with. */
export interface VersionMap {
  /** Changes with every change of the map. */
  readonly revision: string;
  readonly served: ReadonlyMap<string, ServedVersion>;
  /** The versions among them that a client asked for although a higher one is active. */
  readonly deprecated?: readonly DeprecatedVersion[];
}

/** A version that is served to those who pin it. */
export interface DeprecatedVersion {
  readonly id: string;
  /** When the higher version became active. */
  readonly since: Date;
  /** When it will be gone, where its declaration says so. */
  readonly sunset: Date | null;
}

/** Versions that a client wants to be answered by, per projection name. */
export type Pins = ReadonlyMap<string, number>;

/** Who is answered by a version before it is active. */
export interface CanaryRule {
  /** Share of the clients that can be told apart, 0 to 100. */
  readonly percent: number;
  /** A header that leads to it, with this value or, where that is null, with any. Null: none does. */
  readonly header: { readonly name: string; readonly value: string | null } | null;
}

/** A ready version that some clients are answered by. */
export interface Canary extends CanaryRule {
  readonly name: string;
  readonly version: number;
}

/** A ready version that executes some of the live queries again, to be compared. */
export interface ShadowRule {
  readonly name: string;
  readonly version: number;
  /** About one query of so many. */
  readonly oneOf: number;
  /** Tells a comparison that was begun again from the one before. */
  readonly startedAt: string;
}

/** How far a version is. */
export interface VersionProgress {
  readonly projection: string;
  readonly version: number;
  readonly state: VersionState;
  readonly position: GlobalPosition;
  readonly head: GlobalPosition;
  /** 0 to 1. */
  readonly progress: number;
}
