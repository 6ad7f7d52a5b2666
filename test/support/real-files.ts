import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Files of others that are not in the repository. If they are missing, their tests are left out, and the run says so. */
export const realFiles = {
  /** The whole UCI "Online Retail" data set: 541,909 lines. */
  retail: realFile('REFOLD_RETAIL_FILE', 'online-retail.jsonl.gz'),
  /** The PKDD'99 bank's bookings: 46,997 lines. */
  bank: realFile('REFOLD_BANK_FILE', 'berka-trans.jsonl.gz'),
} as const;

export interface RealFile {
  /** The environment variable that holds another path. */
  readonly variable: string;
  readonly name: string;
  /** Undefined if the file is missing. */
  readonly path: string | undefined;
}

function realFile(variable: string, name: string): RealFile {
  const places = [process.env[variable], join(import.meta.dirname, '../../../shared/data', name)];
  return { variable, name, path: places.find((path) => path !== undefined && existsSync(path)) };
}
