import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { readTransitions, type Transition } from '../../store/registry/transitions.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteHistory } from '../remote/remote-versions.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { listOfStores } from '../shared/store-texts.ts';
import { textTable } from '../shared/text-table.ts';
import { parseVersionId } from '../shared/version-argument.ts';

export const history = defineCommand({
  meta: { name: 'history', description: 'Show the transitions of versions: from, to, who, why, when.' },
  args: {
    of: { type: 'positional', description: 'A projection or a version, such as cart_summary@2', required: false },
    limit: { type: 'string', description: 'How many of the latest transitions', default: '50', valueHint: 'N' },
    json: { type: 'boolean', description: 'As JSON' },
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const limit = Number(args.limit);
    if (!Number.isInteger(limit) || limit < 1)
      throw new RefoldError('INVALID_CONFIG', `--limit is a whole number from 1 on, found '${args.limit}'.`);
    const wanted: { name?: string; version?: number } =
      args.of === undefined ? {} : args.of.includes('@') ? parseVersionId(args.of) : { name: args.of };
    if (isRemote(args)) {
      refuseOptions(args);
      const { name, ...of } = wanted;
      return remoteHistory(args, { ...(name === undefined ? {} : { projection: name }), ...of }, limit);
    }
    const config = await loadConfig(args.config);
    const inStores = Object.keys(config.readStores).length > 0;
    const steps = await withOperation(config, ({ stores }) =>
      listOfStores(stores, async ({ db, name: store }): Promise<readonly Step[]> => {
        const found = await readTransitions(db, { ...wanted, limit });
        return inStores ? found.map((step) => ({ ...step, store })) : found;
      }),
    );
    // Those of each store are in the order of their ids, which a stable sort keeps.
    const latest = steps.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at)).slice(-limit);
    console.log(args.json ? JSON.stringify(latest, null, 2) : toText(latest));
  }),
});

interface Step extends Transition {
  /** Where the version was. Absent if one database has all versions. */
  readonly store?: string;
}

function toText(steps: readonly Step[]): string {
  if (steps.length === 0) return 'No transition is recorded.';
  const inStores = steps.some(({ store }) => store !== undefined);
  return textTable(
    ['at', 'version', ...(inStores ? ['store'] : []), 'step', 'actor', 'reason'],
    steps.map(({ at, name, version, store, from, to, actor, reason }) => [
      at,
      `${name}@${version}`,
      ...(store === undefined ? [] : [store]),
      from === null ? to : from === to ? `(${to})` : `${from} → ${to}`,
      actor,
      reason,
    ]),
  );
}
