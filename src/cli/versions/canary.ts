import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { itemsOf } from '../api/operator-api.ts';
import { act } from '../api/run-action.ts';
import { type ApiArguments, apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer, json } from '../shared/format.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

export const canary = defineCommand({
  meta: {
    name: 'canary',
    description:
      'Serve some clients from a ready version before it becomes active, in all processes. Without a version: list the canaries.',
  },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@2', required: false },
    percent: { type: 'string', description: 'Share of the clients, such as 5', valueHint: 'PERCENT' },
    header: {
      type: 'string',
      description: 'Requests with this header, such as x-beta=1, or x-beta for any value',
      valueHint: 'NAME[=VALUE]',
    },
    stop: { type: 'boolean', description: 'End it: all clients get the active version again, at once' },
    breaking: { type: 'boolean', description: 'Also if clients of the version that answers would lose fields' },
    ...reasonArgument,
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const { version } = args;
    if (version === undefined) return list(args);
    const { name } = parseVersionId(version);
    if (args.stop) return act(args, { endCanary: { projection: name } });
    const rule = ruleOf(args.percent, args.header);
    await act(args, { startCanary: { version, ...rule, allowBreaking: args.breaking ?? false } });
  }),
});

function ruleOf(percent: string | undefined, header: string | undefined) {
  if (percent === undefined && header === undefined)
    throw new RefoldError(
      'INVALID_CONFIG',
      'Choose the clients: --percent 5, --header x-beta=1, or both; --stop ends it.',
    );
  const [, name, , headerValue] = /^([\w-]+)(=(.*))?$/.exec(header ?? '') ?? [];
  if (header !== undefined && name === undefined)
    throw new RefoldError('INVALID_CONFIG', `--header is a name, or name=value, found '${header}'.`);
  return { percent: percent === undefined ? 0 : Number(percent), header: name, headerValue };
}

interface CanaryVersion {
  readonly id: string;
  readonly state: string;
  readonly canary: {
    readonly text: string;
    readonly operations: number;
    readonly errors: number;
    readonly otherOperations: number;
    readonly otherErrors: number;
  } | null;
}

const query = `query Canaries($after: String) {
  versions(after: $after) {
    items { id state canary { text percent header headerValue operations errors otherOperations otherErrors } }
    next
    storesAway
  }
}`;

async function list(args: ApiArguments & { readonly json: boolean | undefined }): Promise<void> {
  const { items } = await withApi(args, (api) => itemsOf<CanaryVersion>(api, query));
  const running = items.filter(({ canary }) => canary !== null);
  if (args.json) return console.log(json(running));
  console.log(running.map(lineOf).join('\n') || 'No version is a canary.');
}

function lineOf({ id, state, canary }: CanaryVersion): string {
  return `${id} (${state.toLowerCase()}) answers ${canary?.text}: ${canary && figuresText(canary)}`;
}

/** What its operations have led to, beside those of the active version. */
export function figuresText(canary: NonNullable<CanaryVersion['canary']>): string {
  const { operations, errors, otherOperations, otherErrors } = canary;
  return `${integer(errors)} errors of ${integer(operations)} operations, the active version ${integer(otherErrors)} of ${integer(otherOperations)}`;
}
