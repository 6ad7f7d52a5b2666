import type { GlobalPosition } from '../events/global-position.ts';
import type { Refold } from '../refold.ts';
import { untilTrue, type WaitOptions } from './until-true.ts';

/** Reactors are waited for if they are passed, as in a running application. */
type Reactors = { readonly reactors?: Pick<Refold['reactors'], 'status'> };

/**
 * Waits until everything appended before the call is processed: every maintained version has folded it, and every reactor that is not
 * paused has handled it. Also waits until the rows of inline versions commit with appends. Fails if one has stopped, and on timeout, naming
 * those that are behind. It does not wait for what reactors append meanwhile: call it again for that.
 */
export async function untilCaughtUp(
  refold: Pick<Refold, 'log' | 'status'> & Reactors,
  options: WaitOptions = {},
): Promise<void> {
  await untilPosition(refold, await refold.log.head(), options);
}

/** Like {@link untilCaughtUp}, for everything up to a position, such as that of an append. */
export async function untilPosition(
  refold: Pick<Refold, 'status'> & Reactors,
  position: GlobalPosition,
  options: WaitOptions = {},
): Promise<void> {
  await untilTrue(async () => {
    const maintained = (await refold.status()).filter(({ state }) => state !== 'retired');
    failWhereStopped(maintained);
    // A building version that has reached the position is not active yet, so queries do not use it. Likewise, appends do not fold an inline
    // version yet.
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
 * Waits until a version is active, so that the application answers with it. Fails if its processor has stopped, and on timeout, with its state
 * and the reason if it is held.
 *
 * @param version in the format of the command line: `cart_summary@2`
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
