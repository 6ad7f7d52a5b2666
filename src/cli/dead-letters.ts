import { defineCommand } from 'citty';
import type { Config } from '../define-config.ts';
import {
  type DeadLetterOptions,
  discardDeadLetters,
  listDeadLetters,
  retryDeadLetters,
} from '../runtime/dead-letters.ts';
import { declaredVersion } from './declared-version.ts';
import { telling } from './exit-with-error.ts';
import { integer } from './format.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { type Operation, withOperation } from './open-operation.ts';
import { textTable } from './text-table.ts';
import { reasonArgument } from './version-argument.ts';

const versionArgument = {
  version: { type: 'positional', description: 'Such as cart_summary@2', required: true },
} as const;
const keyArgument = {
  key: {
    type: 'string',
    description: 'One row only: its key, or a JSON array where it is composite',
    valueHint: 'KEY',
  },
} as const;

const list = defineCommand({
  meta: {
    name: 'list',
    description: 'Show the events that a version could not fold, and those that wait behind them.',
  },
  args: { ...versionArgument, json: { type: 'boolean', description: 'As JSON, with stacks' }, ...configArgument },
  run: telling(async ({ args }) => {
    const config = await loadConfig(args.config);
    await withOperation(config, async (operation) => {
      const letters = await listDeadLetters(optionsOf(config, operation, args.version));
      if (args.json) {
        console.log(JSON.stringify(letters, (_, value) => (typeof value === 'bigint' ? value.toString() : value), 2));
        return;
      }
      if (letters.length === 0) console.log(`${args.version} has no dead letters.`);
      else
        console.log(
          textTable(
            ['position', 'event', 'stream', 'row', 'attempts', 'error'],
            letters.map((letter) => [
              integer(letter.position),
              letter.type,
              letter.streamId,
              letter.key ? JSON.stringify(letter.key) : '?',
              String(letter.attempts),
              letter.error?.message ?? '(waits behind an earlier one)',
            ]),
          ),
        );
    });
  }),
});

const retry = defineCommand({
  meta: { name: 'retry', description: 'Fold the kept events again, in order, with the code as it is now.' },
  args: { ...versionArgument, ...keyArgument, ...reasonArgument, ...configArgument },
  run: telling(({ args }) => redeliver(args, retryDeadLetters)),
});

const discard = defineCommand({
  meta: { name: 'discard', description: 'Throw away the events that failed, and fold those that waited behind them.' },
  args: { ...versionArgument, ...keyArgument, ...reasonArgument, ...configArgument },
  run: telling(({ args }) => redeliver(args, discardDeadLetters)),
});

export const deadLetters = defineCommand({
  meta: {
    name: 'dead-letters',
    description: "List, retry or discard the events that a projection with onError 'dead-letter' could not fold.",
  },
  subCommands: { list, retry, discard },
});

async function redeliver(
  args: {
    readonly version: string;
    readonly key: string | undefined;
    readonly reason: string | undefined;
    readonly config: string | undefined;
  },
  work: typeof retryDeadLetters,
): Promise<void> {
  const config = await loadConfig(args.config);
  await withOperation(config, async (operation) => {
    const step = { actor: operation.actor, reason: args.reason ?? 'by hand' };
    const { folded, discarded, left } = await work(optionsOf(config, operation, args.version), step, args.key);
    console.log(`${args.version}: ${integer(folded)} folded, ${integer(discarded)} discarded, ${integer(left)} left.`);
  });
}

function optionsOf(config: Config, { db, log }: Operation, id: string): DeadLetterOptions {
  return { db, log, readSchema: config.database.readSchema, projection: declaredVersion(config, id) };
}
