import { defineProjection, t } from '../../src/index.ts';
import { account } from './sample-domain.ts';

/** Accounts whose owners are unique. The owner `nobody` can't be folded. */
export function uniqueOwner({
  version = 1,
  unique = true,
  mode = 'inline',
  onError = 'stop',
}: Partial<UniqueOwnerOptions> = {}) {
  return defineProjection({
    name: 'unique_owner',
    version,
    events: account,
    mode,
    onError,
    codeVersion: 1,
    table: { accountId: t.text().primaryKey(), owner: unique ? t.text().unique() : t.text().index() },
    key: (event) => event.streamId,
    evolve: {
      Opened: (_, { payload: { owner } }) => {
        if (owner === 'nobody') throw new Error('nobody owns nothing');
        return { owner };
      },
      Closed: () => null,
    },
  });
}

/** Which of the first two versions hold the rule, and what they do with events that they can't fold. */
export interface UniqueRule {
  readonly begins: 1 | 2;
  readonly onError: 'stop' | 'dead-letter';
}

/** Two versions of {@link uniqueOwner}. */
export function uniqueOwners({ begins, onError }: UniqueRule) {
  return [uniqueOwner({ unique: begins === 1, onError }), uniqueOwner({ version: 2, onError })] as const;
}

interface UniqueOwnerOptions {
  readonly version: number;
  readonly unique: boolean;
  readonly mode: 'async' | 'inline';
  readonly onError: 'stop' | 'skip' | 'dead-letter';
}
