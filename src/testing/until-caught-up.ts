import type { GlobalPosition } from '../events/global-position.ts';
import type { Refold } from '../refold.ts';
import { untilTrue, type WaitOptions } from './until-true.ts';

/** What reactors do is waited for where they are given, as a running application gives them. */
type Reactors = { readonly reactors?: Pick<Refold['reactors'], 'status'> };

/**
 * Waits until every maintained version has folded, and every reactor that is not paused has handled, all that was appended before the call;
 * and until the rows of inline versions commit with appends. Fails where one has stopped, and when the time is up, with those that are
 * behind. What reactors append meanwhile is not waited for: call it again.
 */
export async function untilCaughtUp(
  refold: Pick<Refold, 'log' | 'status'> & Reactors,
  options: WaitOptions = {},
): Promise<void> {
  await untilPosition(refold, await refold.log.head(), options);
}

/** As {@link untilCaughtUp}, for what was appended up to a position, such as that of an append. */
export async function untilPosition(
  refold: Pick<Refold, 'status'> & Reactors,
  position: GlobalPosition,
  options: WaitOptions = {},
): Promise<void> {
  await untilTrue(async () => {
    const maintained = (await refold.status()).filter(({ state }) => state !== 'retired');
    failWhereStopped(maintained);
    // A building version that has come so far is not yet active: a query would not find it. Nor does an append find an inline one.
    const behind = maintained.filter(
      (one) => one.position < position || one.state === 'building' || (one.inline !== null && one.inline !== 'live'),
    );
    const reactors = (await refold.reactors?.status()) ?? [];
    const stopped = reactors.find(({ state }) => state === 'stopped');
    if (stopped) throw new Error(`${stopped.name} has stopped: ${stopped.error?.message}`);
    const waiting = reactors.filter((one) => one.position < position && one.state !== 'paused');
    const list = [
      ...behind.map((one) => `${one.name}@${one.version} is ${stateOf(one)} at ${one.position}`),
      ...waiting.map((one) => `${one.name} is ${one.state} at ${one.position}`),
    ];
    if (list.length === 0) return undefined;
    const everything = reactors.length === 0 ? 'every version' : 'everything';
    return new Error(`Expected ${everything} to be at position ${position}, but ${list.join(', ')}.`);
  }, options);
}

/**
 * Waits until a version is active. Fails where its processor has stopped, and when the time is up, with its state and what holds it.
 *
 * @param version as in the command line: `cart_summary@2`
 */
export async function untilActive(
  refold: Pick<Refold, 'status'>,
  version: string,
  options: WaitOptions = {},
): Promise<void> {
  await untilTrue(async () => {
    const all = await refold.status();
    const found = all.find((one) => `${one.name}@${one.version}` === version);
    const known = all.map((one) => `${one.name}@${one.version}`).join(', ');
    if (!found) throw new Error(`There is no version '${version}'. There are: ${known}.`);
    failWhereStopped([found]);
    if (found.state === 'active') return undefined;
    const held = found.heldReason === null ? '' : `, held: ${found.heldReason}`;
    return new Error(
      `Expected ${version} to be active, but it is ${found.state} at position ${found.position}${held}.`,
    );
  }, options);
}

function stateOf({ state, inline }: Awaited<ReturnType<Refold['status']>>[number]): string {
  return inline === null ? state : `${state} (inline: ${inline})`;
}

function failWhereStopped(versions: Awaited<ReturnType<Refold['status']>>): void {
  const stopped = versions.find(({ processor, error }) => processor === 'stopped' && error);
  if (stopped) throw new Error(`${stopped.name}@${stopped.version} has stopped: ${stopped.error?.message}`);
}
