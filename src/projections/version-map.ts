import type { GlobalPosition } from '../events/global-position.ts';
import type { Projection } from './projection.ts';

export type VersionState = 'building' | 'ready' | 'active' | 'retired' | 'failed';

/** What one process serves for one projection name. */
export interface ServedVersion {
  /** The highest active version that this process declares; where none is active, the lowest declared one that is on its way. */
  readonly projection: Projection;
  /** False while no declared version is active: reads answer `PROJECTION_NOT_READY`. */
  readonly active: boolean;
  readonly state: VersionState;
}

/** Which version answers, per projection name. Immutable: an operation keeps the map that it started with. */
export interface VersionMap {
  /** Changes with every change of the map. */
  readonly revision: string;
  readonly served: ReadonlyMap<string, ServedVersion>;
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
