import { setTimeout as pause } from 'node:timers/promises';
import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { typedValues } from '../../projections/projection/given-key.ts';
import type { OperatorApi } from '../api/operator-api.ts';
import { type ActionArguments, act, runAction } from '../api/run-action.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer, json } from '../shared/format.ts';
import { jsonArgument, reasonArgument } from '../shared/version-argument.ts';
import { allLetters, expectKnown, printDiscards, printLetters } from './list-dead-letters.ts';

const versionArgument = {
  version: { type: 'positional', description: 'A version, such as cart_summary@2, or a reactor', required: true },
} as const;
const keyArgument = {
  key: {
    type: 'string',
    description: 'One row only: its key, or a JSON array where it is composite. Of a reactor: one key, as listed',
    valueHint: 'KEY',
  },
} as const;

const list = defineCommand({
  meta: {
    name: 'list',
    description: 'Show the events that could not be folded or handled, and those that wait behind them.',
  },
  args: {
    version: {
      ...versionArgument.version,
      description: 'A version or a reactor. Default: all of them',
      required: false,
    },
    discarded: { type: 'boolean', description: 'Those that were discarded, instead' },
    limit: { type: 'string', description: 'How many at most', default: '1000', valueHint: 'N' },
    json: { type: 'boolean', description: 'As JSON, with stacks' },
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const limit = Number(args.limit);
    if (!Number.isInteger(limit) || limit < 1)
      throw new RefoldError('INVALID_CONFIG', `--limit is a whole number from 1 on, found '${args.limit}'.`);
    const print = args.discarded ? printDiscards : printLetters;
    await withApi(args, (api) => print(api, args, limit));
  }),
});

const redeliverArguments = {
  ...versionArgument,
  ...keyArgument,
  ...reasonArgument,
  ...jsonArgument,
  ...apiArguments,
} as const;

const retry = defineCommand({
  meta: { name: 'retry', description: 'Fold or handle the dead letters again, in order, with the current code.' },
  args: redeliverArguments,
  run: withErrorReporting(({ args }) => withApi(args, (api) => redeliver(api, args, 'retryDeadLetters'))),
});

const discard = defineCommand({
  meta: {
    name: 'discard',
    description: 'Discard the events that failed, and fold or handle those that waited behind them.',
  },
  args: redeliverArguments,
  run: withErrorReporting(({ args }) => withApi(args, (api) => redeliver(api, args, 'discardDeadLetters'))),
});

const recall = defineCommand({
  meta: { name: 'recall', description: 'Restore discarded events: the next rebuild folds them again.' },
  args: redeliverArguments,
  run: withErrorReporting(({ args }) => {
    const key = args.key === undefined ? {} : { key: typedValues(args.key) };
    return act(args, { recallDiscards: { version: args.version, ...key } });
  }),
});

export const deadLetters = defineCommand({
  meta: {
    name: 'dead-letters',
    description:
      "List, retry, discard or recall the events that a projection or a reactor with onError 'dead-letter' could not process, and the event that a projection stopped at.",
  },
  subCommands: { list, retry, discard, recall },
});

type RedeliverArguments = ActionArguments & { readonly version: string; readonly key: string | undefined };

interface Total {
  folded: number;
  discarded: number;
  left: number;
  continues: boolean;
}

/** Exits with 1 if nothing was done: a script must see a failure. */
async function redeliver(
  api: OperatorApi,
  args: RedeliverArguments,
  name: 'retryDeadLetters' | 'discardDeadLetters',
): Promise<void> {
  const { version, key } = args;
  await expectKnown(api, version);
  const chosen = key === undefined ? { filter: { of: version } } : { ids: await idsOf(api, version, key) };
  const before = isReactor(version) ? await countOf(api, version, key) : 0;
  const total: Total = { folded: 0, discarded: 0, left: 0, continues: false };
  for (let after: string | null = null; ; ) {
    const outcome = await runAction(api, args, { [name]: { ...chosen, ...(after === null ? {} : { after }) } });
    total.folded += outcome.folded ?? 0;
    total.discarded += outcome.discarded ?? 0;
    total.left += outcome.left ?? 0;
    total.continues ||= outcome.continues;
    after = outcome.next;
    if (after === null) break;
  }
  if (isReactor(version)) return untilDone(api, args, before, name === 'retryDeadLetters' ? 'handled' : 'discarded');
  const inVain = total.folded + total.discarded === 0 && !total.continues;
  if (inVain) process.exitCode = 1;
  if (args.json) return console.log(json(total));
  const done = inVain
    ? 'nothing could be folded'
    : `${integer(total.folded)} folded, ${integer(total.discarded)} discarded`;
  const why = total.left > 0 ? ` 'refold dead-letters list ${version}' shows why.` : '';
  const code = inVain ? ' They still fail with the code of the process that folds them.' : '';
  const goesOn = total.continues ? ' Its processor continues.' : '';
  console.log(`${version}: ${done}, ${integer(total.left)} left.${code}${why}${goesOn}`);
}

/** The process that runs the reactor does it. Waits for the result if there is one. */
async function untilDone(
  api: OperatorApi,
  args: RedeliverArguments,
  before: number,
  what: 'handled' | 'discarded',
): Promise<void> {
  const { version: name, key } = args;
  for (;;) {
    const letters = await lettersOf(api, name, key);
    if (letters.every(({ requested }) => requested === null)) {
      const done = Math.max(0, before - letters.length);
      if (done === 0) process.exitCode = 1;
      if (args.json) return console.log(json({ done, left: letters.length }));
      const why = letters.length > 0 ? ` 'refold dead-letters list ${name}' shows why.` : '';
      const count = done === 0 ? 'nothing could be' : integer(done);
      return console.log(`${name}: ${count} ${what}, ${integer(letters.length)} left.${why}`);
    }
    const query = 'query Reactor($name: ID!) { reactor(name: $name) { state } }';
    const { reactor } = await api.query<{ reactor: { readonly state: string } | null }>(query, { name });
    if (reactor?.state !== 'running') {
      if (args.json) return console.log(json({ done: 0, left: letters.length, waitsFor: 'owner' }));
      return console.log(
        `${name} is ${reactor?.state ?? 'gone'}: no process runs it now. The request is executed as soon as one does.`,
      );
    }
    await pause(250);
  }
}

/** Whether it is the name of a reactor; a version has an '@'. */
function isReactor(name: string): boolean {
  return !name.includes('@');
}

async function countOf(api: OperatorApi, of: string, key: string | undefined): Promise<number> {
  return (await lettersOf(api, of, key)).length;
}

async function lettersOf(api: OperatorApi, of: string, key: string | undefined) {
  const letters = await allLetters(api, of);
  if (key === undefined) return letters;
  const found = letters.filter((letter) => keyText(letter.key) === keyText(typedValues(key)));
  return found.length > 0 ? found : letters.filter((letter) => keyText(letter.key) === keyText(key));
}

/** The key of a row is a list of values, that of a reactor a text. */
function keyText(key: unknown): string {
  return JSON.stringify((Array.isArray(key) ? key : [key]).map(String));
}

const mostIds = 1000;

async function idsOf(api: OperatorApi, of: string, key: string): Promise<readonly string[]> {
  const found = await lettersOf(api, of, key);
  if (found.length === 0) throw new RefoldError('INVALID_TRANSITION', `${of} has no dead letters of ${key}.`);
  return found.slice(0, mostIds).map(({ id }) => id);
}
