import { importWithGraphql } from '../../config/graphql-package.ts';
import { RefoldError } from '../../errors.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { openHttpApi } from './http-api.ts';
import type { OperatorApi } from './operator-api.ts';

/** The arguments of all commands that use the admin API. */
export const apiArguments = {
  ...configArgument,
  remote: {
    type: 'string',
    description: 'Use the admin API of a running gateway, not the database and the file of the application',
    valueHint: 'URL',
  },
} as const;

export interface ApiArguments {
  readonly config: string | undefined;
  readonly remote: string | undefined;
}

/**
 * Runs a command on the admin API of the gateway that `--remote` names, else on the one of this process, which uses the application's database
 * and declarations.
 *
 * @param onSignal what a signal does instead of ending the process
 */
export async function withApi<T>(
  { config, remote }: ApiArguments,
  work: (api: OperatorApi) => Promise<T>,
  onSignal?: () => void,
): Promise<T> {
  if (remote !== undefined) {
    if (config !== undefined) throw new RefoldError('INVALID_CONFIG', "--config can't be combined with --remote.");
    return work(openHttpApi(remote));
  }
  const application = await loadConfig(config);
  return withOperation(
    application,
    async (operation) => {
      // Loaded on demand: `refold --help` and commands without it start faster.
      const { openLocalApi } = await importWithGraphql(() => import('./local-api.ts'));
      const api = openLocalApi(application, operation);
      try {
        return await work(api);
      } finally {
        await api.close();
      }
    },
    onSignal,
  );
}
