import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Files of others that are not in the repository. If they are missing, their tests are left out, and the run says so. */
export const realFiles = {
  /** The whole UCI "Online Retail" data set: 541,909 lines. */
  retail: realFile('REFOLD_RETAIL_FILE', 'online-retail.jsonl.gz'),
  /** The PKDD'99 bank's bookings: 46,997 lines. They take half a minute: outside CI, only if the variable names the file. */
  bank: realFile('REFOLD_BANK_FILE', 'berka-trans.jsonl.gz', { onlyInCi: true }),
  /** The green taxis' rides of New York, January to March 2023: 205,064 lines, in the order of their pickup. */
  taxi: realFile('REFOLD_TAXI_FILE', 'nyc-green-taxi-2023q1.jsonl.gz'),
  /** The taxi zones of New York: 265 lines. */
  taxiZones: realFile('REFOLD_TAXI_ZONES_FILE', 'nyc-taxi-zones.jsonl.gz'),
} as const;

export interface RealFile {
  /** The environment variable that holds another path. */
  readonly variable: string;
  readonly name: string;
  /** Undefined if the file is missing, or not read outside CI. */
  readonly path: string | undefined;
  /** Whether it is there, and not read because that takes long. */
  readonly isLeftOut: boolean;
}

function realFile(variable: string, name: string, { onlyInCi = false } = {}): RealFile {
  const named = process.env[variable];
  const shared = join(import.meta.dirname, '../../../shared/data', name);
  const path = [named, shared].find((path) => path !== undefined && existsSync(path));
  const isLeftOut = onlyInCi && process.env.CI === undefined && path === shared;
  return { variable, name, isLeftOut, path: isLeftOut ? undefined : path };
}
