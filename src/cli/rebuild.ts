import { setTimeout as pause } from 'node:timers/promises';
import { defineCommand } from 'citty';
import { Presets, SingleBar } from 'cli-progress';
import { RefoldError } from '../errors.ts';
import { cancelRebuild, requestRebuild } from '../runtime/rebuild.ts';
import { readStatus } from '../runtime/status.ts';
import { lastReason } from '../store/registry.ts';
import { declaredVersion } from './declared-version.ts';
import { telling } from './exit-with-error.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { type Operation, withOperation } from './open-operation.ts';
import { reasonArgument } from './version-argument.ts';

export const rebuild = defineCommand({
  meta: {
    name: 'rebuild',
    description:
      'Build the table of a version anew from the whole log, while the old one serves; it takes over at the end.',
  },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@2', required: true },
    cancel: { type: 'boolean', description: 'End a rebuild without a result' },
    detach: { type: 'boolean', description: 'Ask for it and come back at once' },
    ...reasonArgument,
    ...configArgument,
  },
  run: telling(async ({ args }) => {
    const config = await loadConfig(args.config);
    const projection = declaredVersion(config, args.version);
    const { name, version } = projection;
    const { readSchema } = config.database;
    await withOperation(config, async (operation) => {
      const step = { actor: operation.actor, reason: args.reason ?? 'by hand' };
      if (args.cancel) {
        await cancelRebuild(operation.db, name, version, readSchema, step);
        console.log(`The rebuild of ${name}@${version} is cancelled.`);
        return;
      }
      await requestRebuild(operation.db, projection, readSchema, step);
      console.log(`${name}@${version} is being rebuilt by the process that maintains it.`);
      if (!args.detach) console.log(await follow(operation, name, version));
    });
  }),
});

/** Shows the progress until the rebuild has ended. Ctrl-C ends the showing, not the rebuild. */
async function follow({ db, log }: Operation, name: string, version: number): Promise<string> {
  const format = '{bar} {percentage}% | {value} of {total} | ETA {eta_formatted}';
  const bar = process.stdout.isTTY ? new SingleBar({ format, hideCursor: true }, Presets.shades_classic) : undefined;
  bar?.start(1, 0);
  try {
    for (;;) {
      const status = (await readStatus(db, log)).find((one) => one.name === name && one.version === version);
      if (!status?.rebuild) break;
      if (status.rebuild.error) throw stopped(`${name}@${version}`, status.rebuild.error.message);
      bar?.setTotal(Number(status.head));
      bar?.update(Number(status.rebuild.checkpoint));
      await pause(200);
    }
  } finally {
    bar?.stop();
  }
  return `${name}@${version}: ${(await lastReason(db, name, version)) ?? 'the rebuild has ended'}.`;
}

function stopped(id: string, message: string): RefoldError {
  return new RefoldError(
    'EVOLVE_FAILED',
    `The rebuild has stopped: ${message} The old table serves on; 'refold rebuild ${id} --cancel' ends the rebuild.`,
  );
}
