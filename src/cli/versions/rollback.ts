import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { planRollback } from '../../runtime/actions/rollback-plan.ts';
import { activeVersions } from '../../runtime/actions/version-basis.ts';
import { refused } from '../../runtime/versions/expect-version.ts';
import { act } from '../remote/remote-action.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { jsonArgument, reasonArgument } from '../shared/version-argument.ts';

export const rollback = defineCommand({
  meta: {
    name: 'rollback',
    description:
      'Take the highest active version of a projection out of service: the version below it answers at once.',
  },
  args: {
    projection: { type: 'positional', description: 'Such as cart_summary', required: true },
    ...reasonArgument,
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const [name = '', version] = args.projection.split('@');
    if (isRemote(args)) {
      refuseOptions(args);
      if (version !== undefined) throw new RefoldError('INVALID_CONFIG', `Name the projection only: '${name}'.`);
      return act(args, { rollback: { projection: name } });
    }
    const config = await loadConfig(args.config);
    await withOperation(config, async ({ db, log, lifecycle, actor }) => {
      const highest = (await activeVersions(db, name)).slice(-2)[1];
      if (highest && version !== undefined && Number(version) !== highest.version)
        throw refused(
          name,
          highest.version,
          `is the highest active version, and the one to roll back, not @${version}.`,
        );
      const plan = await planRollback(db, config, name);
      const { from, to } = await lifecycle.rollback(name, { actor, reason: args.reason ?? 'rolled back by hand' });
      const left = plan.isLeft ? plan.to : undefined;
      const behind = left ? { position: left.checkpoint.toString() } : null;
      if (args.json) return console.log(JSON.stringify({ name, from, to, notCurrent: behind }));
      console.log(
        `${name}@${to} answers again. ${name}@${from} stays current and ready: 'refold activate ${name}@${from}' reactivates it.`,
      );
      if (left)
        console.log(
          `Warning: no process maintains ${name}@${to}; it is at position ${integer(left.checkpoint)} of ${integer(await log.head())}.${left.error ? ` ${left.error.message}` : ''}`,
        );
    });
  }),
});
