import { defineCommand } from 'citty';
import { readStatus } from '../../runtime/monitoring/status.ts';
import { refused } from '../../runtime/versions/expect-version.ts';
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
  },
  run: withErrorReporting(async ({ args }) => {
    const [name = '', version] = args.projection.split('@');
    const config = await loadConfig(args.config);
    await withOperation(config, async ({ db, log, lifecycle, actor }) => {
      const versions = (await readStatus(db, log)).filter((one) => one.name === name && one.state === 'active');
      const [next, highest] = versions.slice(-2);
      if (highest && version !== undefined && Number(version) !== highest.version)
        throw refused(
          name,
          highest.version,
          `is the highest active version, and the one to roll back, not @${version}.`,
        );
      const declared = config.projections.some((one) => one.name === name && one.version === next?.version);
      if (highest && next && !declared)
        throw refused(
          name,
          next.version,
          'would answer, but this application does not declare it. Declare it again, deploy that, and let it catch up.',
        );
      const { from, to } = await lifecycle.rollback(name, { actor, reason: args.reason ?? 'rolled back by hand' });
      // For a live inline version, appends do the work of a processor.
      const left = next && next.processor !== 'running' && next.inline !== 'live' ? next : undefined;
      const behind = left ? { position: left.position.toString() } : null;
      if (args.json) return console.log(JSON.stringify({ name, from, to, notCurrent: behind }));
      console.log(
        `${name}@${to} answers again. ${name}@${from} stays current and ready: 'refold activate ${name}@${from}' reactivates it.`,
      );
      if (left)
        console.log(
          `Warning: no process maintains ${name}@${to}; it is at position ${integer(left.position)} of ${integer(left.head)}.${left.error ? ` ${left.error.message}` : ''}`,
        );
    });
  }),
});
