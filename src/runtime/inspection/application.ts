import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ReadStores } from '../../store/read-store.ts';
import type { SchemaEvolution } from '../activation/schema-evolution.ts';
import type { StoreFinder } from '../stores/steps-of-stores.ts';

/** The application that an operator looks at. In development its declarations may be replaced, so read them each time. */
export interface InspectedApplication {
  /** The connections of operators to the log's database: their reads never take those of clients, and each statement has a time limit. */
  readonly db: Database;
  /** The same for all stores. */
  readonly stores: ReadStores;
  /** Finds the store of a version. */
  readonly find: StoreFinder;
  /** The log, read over the same connections. */
  readonly log: EventLog;
  readonly config: Config;
  readonly schemaEvolution: SchemaEvolution;
}

/** A version as operators name it, such as `cart_summary@2`. */
export interface VersionName {
  readonly name: string;
  readonly version: number;
}

/** @throws RefoldError `BAD_USER_INPUT` */
export function versionName(id: string): VersionName {
  const [, name, version] = /^([a-z][a-z0-9_]*)@([1-9]\d{0,8})$/.exec(id) ?? [];
  if (name !== undefined && version !== undefined) return { name, version: Number(version) };
  throw new RefoldError('BAD_USER_INPUT', `A version is named like cart_summary@2, found '${id.slice(0, 80)}'.`);
}

/** The database that has a version. */
export async function dbOfVersion({ find }: Pick<InspectedApplication, 'find'>, id: string): Promise<Database> {
  const { name, version } = versionName(id);
  return (await find.of(name, version)).db;
}

/** The beginning of a sentence about stores that do not respond, of which there is at least one. */
export function awayText(away: readonly string[]): string {
  const names = away.map((name) => `'${name}'`).join(', ');
  return away.length === 1 ? `The read store ${names} does not respond` : `The read stores ${names} do not respond`;
}

/** What was found. @throws RefoldError `DATABASE_UNAVAILABLE` if nothing was, and a store that does not respond may have it */
export function foundOrAway<T>(found: T | undefined, what: string, away: readonly string[]): T | null {
  if (found === undefined && away.length > 0)
    throw new RefoldError('DATABASE_UNAVAILABLE', `${awayText(away)}. The other stores do not have ${what}.`);
  return found ?? null;
}

/** The declaration of a version. @throws RefoldError `BAD_USER_INPUT` if this process declares no such version */
export function declaredVersionOf({ projections }: Pick<Config, 'projections'>, id: string): Projection {
  const found = projections.find((one) => one.id === id);
  if (found) return found;
  versionName(id);
  const known = projections.map((one) => one.id);
  throw new RefoldError('BAD_USER_INPUT', `The application declares no ${id}.${closest(id, known)}`);
}

/** A count that ends at a bound. */
export interface BoundedCount {
  readonly value: number;
  /** False: there are more than `value`. */
  readonly isExact: boolean;
}

/** Counts of dead letters and the like end here. */
export const countBound = 1000;

/** What a statement counted that stops one above the bound. */
export function boundedCount(counted: number, bound: number = countBound): BoundedCount {
  return { value: Math.min(counted, bound), isExact: counted <= bound };
}
