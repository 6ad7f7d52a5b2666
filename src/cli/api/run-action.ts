import { createInterface } from 'node:readline/promises';
import { RefoldError } from '../../errors.ts';
import { json } from '../shared/format.ts';
import type { OperatorApi } from './operator-api.ts';
import { type ApiArguments, withApi } from './with-api.ts';

/** One action of the admin API with its input, such as `{ pause: { version: 'cart_summary@2' } }`. */
export type ActionInput = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface ActionOutcome {
  readonly action: string;
  readonly summary: string;
  readonly folded: number | null;
  readonly discarded: number | null;
  readonly left: number | null;
  readonly continues: boolean;
  readonly next: string | null;
}

interface Preview {
  readonly right: string;
  readonly isAllowed: boolean;
  readonly summary: string;
  readonly details: readonly string[];
  readonly warnings: readonly string[];
  readonly refusal: string | null;
  readonly overcomeBy: readonly string[];
  readonly digest: string | null;
}

const preview = `query Preview($action: ActionInput!) {
  preview(action: $action) { right isAllowed summary details warnings refusal overcomeBy digest }
  me { name }
}`;
const run = `mutation Run($action: ActionInput!, $digest: String!, $reason: String!) {
  run(action: $action, digest: $digest, reason: $reason) { action summary folded discarded left continues next }
}`;

export interface ActionArguments extends ApiArguments {
  readonly json?: boolean | undefined;
  readonly reason: string | undefined;
}

/** The command that is one action: runs it, and prints what was done. @throws RefoldError like {@link runAction} */
export function act(args: ActionArguments, action: ActionInput): Promise<void> {
  return withApi(args, async (api) => {
    printOutcome(args, await runAction(api, args, action));
    const hint = args.json ? undefined : wayBack(action);
    if (hint !== undefined) console.log(hint);
  });
}

/** The command that undoes an action whose effect lasts. */
function wayBack({ pause, pauseReactor }: ActionInput): string | undefined {
  if (pause) return `'refold resume ${pause.version}' resumes it.`;
  return pauseReactor && `'refold reactor resume ${pauseReactor.reactor}' resumes it.`;
}

export function printOutcome(args: Pick<ActionArguments, 'json'>, outcome: ActionOutcome): void {
  console.log(args.json ? json(outcome) : outcome.summary);
}

/**
 * Runs an action as its preview describes it. Shows the preview's warnings, and all of it if it asks for the reason. Prints nothing with `--json`.
 *
 * @throws RefoldError `FORBIDDEN` without the right, `INVALID_TRANSITION` if the state does not allow it, `INVALID_CONFIG` without a reason
 */
export async function runAction(
  api: OperatorApi,
  args: Pick<ActionArguments, 'json' | 'reason'>,
  action: ActionInput,
): Promise<ActionOutcome> {
  const { preview: shown, me } = await api.query<{ preview: Preview; me: { name: string } }>(preview, { action });
  if (!shown.isAllowed)
    throw new RefoldError(
      'FORBIDDEN',
      `'${me.name}' lacks the right ${shown.right}: the gateway's option 'gateway.admin' grants it.`,
    );
  if (shown.refusal !== null || shown.digest === null) {
    if (shown.overcomeBy.length > 0 && isTerminal() && (await ask(`${shown.refusal} Do it anyway? [y/N] `)) === 'y')
      return runAction(api, args, overcome(action, shown.overcomeBy));
    throw new RefoldError('INVALID_TRANSITION', [shown.refusal, ...shown.overcomeBy.map(wayOut)].join(' '));
  }
  const known = args.reason ?? api.usualReason;
  const warnings = shown.warnings.map((text) => `Warning: ${text}`);
  const lines = known === undefined ? [shown.summary, ...shown.details, ...warnings] : warnings;
  if (!args.json && lines.length > 0) console.log(lines.join('\n'));
  const variables = { action, digest: shown.digest, reason: known ?? (await askForReason()) };
  return (await api.query<{ run: ActionOutcome }>(run, variables)).run;
}

function overcome(action: ActionInput, names: readonly string[]): ActionInput {
  const set = Object.fromEntries(names.map((name) => [name, true]));
  return Object.fromEntries(Object.entries(action).map(([name, input]) => [name, { ...input, ...set }]));
}

// The names of the options of the command line.
const flags: Readonly<Record<string, string>> = { allowBreaking: '--breaking', allowLoss: '--yes', force: '--force' };

function wayOut(input: string): string {
  return `Use ${flags[input] ?? input} to do it anyway.`;
}

/** @throws RefoldError `INVALID_CONFIG` if nobody can be asked, or if there is no answer */
async function askForReason(): Promise<string> {
  if (!isTerminal())
    throw new RefoldError(
      'INVALID_CONFIG',
      'Nothing was done. The audit log of the gateway needs a reason: --reason TEXT.',
    );
  const answer = await ask('Why? The audit log records it. Leave it empty to do nothing: ');
  if (answer === '') throw new RefoldError('INVALID_CONFIG', 'Nothing was done.');
  return answer;
}

function isTerminal(): boolean {
  return process.stdin.isTTY && process.stdout.isTTY;
}

async function ask(text: string): Promise<string> {
  const question = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await question.question(text);
  question.close();
  return answer.trim();
}
