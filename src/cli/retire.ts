import { defineCommand } from 'citty';
import { telling } from './exit-with-error.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { withOperation } from './open-operation.ts';
import { parseVersionId, reasonArgument } from './version-argument.ts';

export const retire = defineCommand({
  meta: { name: 'retire', description: 'End the maintenance of a version. Its table stays, as it is.' },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@1', required: true },
    ...reasonArgument,
    ...configArgument,
  },
  run: telling(async ({ args }) => {
    const { name, version } = parseVersionId(args.version);
    await withOperation(await loadConfig(args.config), ({ lifecycle, actor }) =>
      lifecycle.retire(name, version, { actor, reason: args.reason ?? 'retired by hand' }),
    );
    console.log(`${name}@${version} is retired. Remove its declaration.`);
  }),
});
