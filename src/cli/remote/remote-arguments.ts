import { RefoldError } from '../../errors.ts';

/** The argument of all commands that the admin API can execute. */
export const remoteArgument = {
  remote: {
    type: 'string',
    description: 'Use the admin API of a running gateway, not the database and the file of the application',
    valueHint: 'URL',
  },
} as const;

/** What commands that execute remotely have in common. */
export interface RemoteArguments {
  readonly remote: string;
  readonly json: boolean | undefined;
}

type Given = Readonly<Record<string, unknown>>;

/** Whether the command is to be executed by a gateway. */
export function isRemote<T extends { readonly remote: string | undefined }>(args: T): args is T & { remote: string } {
  return args.remote !== undefined;
}

/** @throws RefoldError `INVALID_CONFIG` for options that only make sense with the database */
export function refuseOptions(args: Given, ...names: readonly string[]): void {
  for (const name of ['config', ...names])
    if (args[name] !== undefined && args[name] !== false)
      throw new RefoldError('INVALID_CONFIG', `--${name} can't be combined with --remote.`);
}
