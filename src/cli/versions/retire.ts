import { createInterface } from 'node:readline/promises';
import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { retirementOf } from '../../runtime/actions/retirement.ts';
import { refused } from '../../runtime/versions/expect-version.ts';
import { act } from '../remote/remote-action.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

export const retire = defineCommand({
  meta: { name: 'retire', description: 'End the maintenance of a version. Its table is dropped after a grace period.' },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@1', required: true },
    grace: { type: 'string', description: 'Hours until its table is dropped', default: '24', valueHint: 'HOURS' },
    force: { type: 'boolean', description: 'Also if it is the version that answers' },
    yes: {
      type: 'boolean',
      description: 'Also if live processes lose it, or a unique rule ends; do not ask',
      alias: 'y',
    },
    ...reasonArgument,
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const { name, version } = parseVersionId(args.version);
    const hours = Number(args.grace);
    if (!(hours >= 0)) throw new RefoldError('INVALID_CONFIG', `--grace is a number of hours, found '${args.grace}'.`);
    if (isRemote(args)) {
      // The API's `force` covers both.
      refuseOptions(args, 'yes');
      return act(args, { retire: { version: args.version, graceHours: hours, force: args.force ?? false } });
    }
    const config = await loadConfig(args.config);
    await withOperation(config, async ({ dbOf, lifecycle, actor }) => {
      const step = { actor, reason: args.reason ?? 'retired by hand' };
      const { answering, losing, ending } = await retirementOf(await dbOf(name, version), name, version);
      if (answering !== null && !args.force)
        throw refused(name, version, `${answering} Use --force to retire it anyway.`);
      const problem = [losing, ending].filter((one) => one !== null).join(' It ');
      if (problem !== '' && !args.yes) await askToRetire(name, version, problem);
      await lifecycle.retire(name, version, step, hours * 3600);
    });
    if (args.json) console.log(JSON.stringify({ name, version, state: 'retired', dropInHours: hours }));
    else console.log(`${name}@${version} is retired; its table is dropped in ${hours} h. Remove its declaration.`);
  }),
});

/** @throws RefoldError `INVALID_TRANSITION` unless the user confirms */
async function askToRetire(name: string, version: number, problem: string): Promise<void> {
  const terminal = process.stdin.isTTY && process.stdout.isTTY;
  if (!terminal) throw refused(name, version, `${problem} Deploy the next version there first, or use --yes.`);
  const question = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await question.question(`${name}@${version} ${problem} Retire it anyway? [y/N] `);
  question.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw refused(name, version, 'is not retired.');
}
