import { createInterface } from 'node:readline/promises';
import { RefoldError } from '../../errors.ts';
import { openRemote, type RemoteApi } from './remote-api.ts';
import type { RemoteArguments } from './remote-arguments.ts';

/** One action of the admin API with its input, such as `{ pause: { version: 'cart_summary@2' } }`. */
export type RemoteAction = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface RemoteOutcome {
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

export type ActionArguments = RemoteArguments & { readonly reason: string | undefined };

/** Runs an action, and prints what was done. @throws RefoldError like {@link runAction} */
export async function act(args: ActionArguments, action: RemoteAction): Promise<void> {
  const outcome = await runAction(openRemote(args.remote), args, action);
  console.log(args.json ? JSON.stringify(outcome, null, 2) : outcome.summary);
}

/**
 * Shows what an action would do, asks for the reason if none is given, and runs it as it was shown. Prints nothing with `--json`.
 *
 * @throws RefoldError `FORBIDDEN` without the right, `INVALID_TRANSITION` if the state does not allow it, `INVALID_CONFIG` without a reason
 */
export async function runAction(
  api: RemoteApi,
  { json, reason }: Pick<ActionArguments, 'json' | 'reason'>,
  action: RemoteAction,
): Promise<RemoteOutcome> {
  const { preview: shown, me } = await api.query<{ preview: Preview; me: { name: string } }>(preview, { action });
  if (!shown.isAllowed)
    throw new RefoldError(
      'FORBIDDEN',
      `'${me.name}' lacks the right ${shown.right}: the gateway's option 'gateway.admin' grants it.`,
    );
  if (shown.refusal !== null || shown.digest === null)
    throw new RefoldError('INVALID_TRANSITION', [shown.refusal, ...shown.overcomeBy.map(wayOut)].join(' '));
  if (!json)
    console.log([shown.summary, ...shown.details, ...shown.warnings.map((text) => `Warning: ${text}`)].join('\n'));
  const done = await api.query<{ run: RemoteOutcome }>(run, {
    action,
    digest: shown.digest,
    reason: reason ?? (await askForReason()),
  });
  return done.run;
}

// The names of the options of the command line.
const flags: Readonly<Record<string, string>> = { allowBreaking: '--breaking', force: '--force' };

function wayOut(input: string): string {
  return `Use ${flags[input] ?? input} to do it anyway.`;
}

/** @throws RefoldError `INVALID_CONFIG` if nobody can be asked, or if there is no answer */
async function askForReason(): Promise<string> {
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new RefoldError(
      'INVALID_CONFIG',
      'Nothing was done. The audit log of the gateway needs a reason: --reason TEXT.',
    );
  const question = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await question.question('Why? The audit log records it. Leave it empty to do nothing: ');
  question.close();
  if (answer.trim() === '') throw new RefoldError('INVALID_CONFIG', 'Nothing was done.');
  return answer.trim();
}
