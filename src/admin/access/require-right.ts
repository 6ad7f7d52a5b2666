import type { AdminRight } from '../../config/admin-options.ts';
import { RefoldError } from '../../errors.ts';

/** Who calls the admin API. */
export interface Caller {
  /** The audit log records it. */
  readonly name: string;
  readonly rights: ReadonlySet<AdminRight>;
}

/** @throws RefoldError `FORBIDDEN`, with the missing right */
export function requireRight({ name, rights }: Caller, right: AdminRight): void {
  if (rights.has(right)) return;
  throw new RefoldError('FORBIDDEN', `'${name}' does not have the right '${right}'. gateway.admin grants rights.`, {
    right,
  });
}
