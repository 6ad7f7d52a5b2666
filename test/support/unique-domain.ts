import { defineProjection, t } from '../../src/index.ts';
import { account } from './sample-domain.ts';

/** Accounts whose owners are unique. */
export function uniqueOwner({ version = 1, unique = true, onError = 'stop' }: Partial<UniqueOwnerOptions> = {}) {
  return defineProjection({
    name: 'unique_owner',
    version,
    events: account,
    mode: 'inline',
    onError,
    codeVersion: 1,
    table: { accountId: t.text().primaryKey(), owner: unique ? t.text().unique() : t.text().index() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, event) => ({ owner: event.payload.owner }), Closed: () => null },
  });
}

interface UniqueOwnerOptions {
  readonly version: number;
  readonly unique: boolean;
  readonly onError: 'stop' | 'skip' | 'dead-letter';
}
