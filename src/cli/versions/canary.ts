import { defineCommand } from 'citty';
import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import type { CanaryRule } from '../../projections/projection/version-map.ts';
import { canaryFiguresText, canaryText } from '../../runtime/versions/canary-steps.ts';
import { inEachStore } from '../../store/read-store.ts';
import { readCanaryFigures } from '../../store/registry/canaries.ts';
import { readRegistry } from '../../store/registry/registry.ts';
import { type ActionArguments, act } from '../remote/remote-action.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteCanaries } from '../remote/remote-versions.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { json } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { listOfStores } from '../shared/store-texts.ts';
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
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) return remotely(args);
    const config = await loadConfig(args.config);
    if (args.version === undefined) return list(config, args.json ?? false);
    const { name, version } = parseVersionId(args.version);
    if (args.stop) {
      await withOperation(config, ({ lifecycle, actor }) =>
        lifecycle.endCanary(name, { actor, reason: args.reason ?? 'ended by hand' }),
      );
      console.log(args.json ? json({ name, version, canary: null }) : `${args.version} is no longer a canary.`);
      return;
    }
    const rule = ruleOf(args.percent, args.header);
    await withOperation(config, ({ lifecycle, actor }) =>
      lifecycle.startCanary(
        name,
        version,
        rule,
        { actor, reason: args.reason ?? 'begun by hand' },
        { allowBreaking: args.breaking ?? false },
      ),
    );
    console.log(args.json ? json({ name, version, canary: rule }) : `${args.version} answers ${canaryText(rule)}.`);
  }),
});

interface CanaryArguments extends ActionArguments {
  readonly version: string | undefined;
  readonly percent: string | undefined;
  readonly header: string | undefined;
  readonly stop: boolean | undefined;
  readonly breaking: boolean | undefined;
}

async function remotely(args: CanaryArguments): Promise<void> {
  refuseOptions({ ...args });
  const { version } = args;
  if (version === undefined) return remoteCanaries(args);
  if (args.stop) return act(args, { endCanary: { projection: parseVersionId(version).name } });
  const { percent, header } = ruleOf(args.percent, args.header);
  const condition = header === null ? {} : { header: header.name, headerValue: header.value };
  await act(args, { startCanary: { version, percent, ...condition, allowBreaking: args.breaking ?? false } });
}

function ruleOf(percent: string | undefined, header: string | undefined): CanaryRule {
  if (percent === undefined && header === undefined)
    throw new RefoldError(
      'INVALID_CONFIG',
      'Choose the clients: --percent 5, --header x-beta=1, or both; --stop ends it.',
    );
  const [, name, , value = null] = /^([\w-]+)(=(.*))?$/.exec(header ?? '') ?? [];
  if (header !== undefined && name === undefined)
    throw new RefoldError('INVALID_CONFIG', `--header is a name, or name=value, found '${header}'.`);
  return {
    percent: percent === undefined ? 0 : Number(percent),
    header: name === undefined ? null : { name: name.toLowerCase(), value },
  };
}

async function list(config: Config, asJson: boolean): Promise<void> {
  const [registered, all] = await withOperation(
    config,
    async ({ stores }) =>
      [await listOfStores(stores, ({ db }) => readRegistry(db)), await inEachStore(stores, readCanaryFigures)] as const,
  );
  const running = registered.flatMap(({ name, version, state, canary: rule }) => {
    const figures = all.find((one) => one.name === name && one.version === version);
    return rule && figures ? [{ ...figures, state, ...rule }] : [];
  });
  if (asJson) return console.log(json(running));
  const lines = running.map(
    (one) => `${one.name}@${one.version} (${one.state}) answers ${canaryText(one)}: ${canaryFiguresText(one)}`,
  );
  console.log(lines.join('\n') || 'No version is a canary.');
}
