import { expect, test } from 'vitest';
import { simulateTraffic } from '../../examples/shopping-cart/simulator.ts';
import { type Command, CommandRejected, type RefoldError } from '../../src/index.ts';

const asFastAsPossible = 1_000_000;

test('the traffic ends when the signal aborts, also in the middle of a pause', async () => {
  const stop = new AbortController();
  const traffic = simulateTraffic({
    signal: stop.signal,
    eventsPerSecond: 1 / 3_600,
    execute: async () => void setImmediate(() => stop.abort()),
  });
  await traffic;
});

test('the traffic is the same for the same seed', async () => {
  const first = await commandsOf(7, () => true);
  expect(await commandsOf(7, () => true)).toEqual(first);
  expect(await commandsOf(8, () => true)).not.toEqual(first);
});

test('a cart that refuses a command gets no more, and the traffic continues', async () => {
  const refusedCarts = new Set<string>();
  await commandsOf(7, (command, input) => {
    if (input.cartId === undefined) return true;
    expect(refusedCarts).not.toContain(input.cartId);
    if (command.name !== 'removeProductItem') return true;
    refusedCarts.add(input.cartId);
    return false;
  });
  expect(refusedCarts.size).toBeGreaterThan(3);
});

test('an unexpected error ends the traffic', async () => {
  const execute = async () => {
    throw new TypeError('a bug');
  };
  await expect(simulateTraffic({ execute, signal: new AbortController().signal })).rejects.toThrow('a bug');
});

/** The first 200 commands. */
async function commandsOf(
  seed: number,
  accepts: (command: Command, input: { cartId?: string }) => boolean,
): Promise<unknown[]> {
  const stop = new AbortController();
  const commands: unknown[] = [];
  await simulateTraffic({
    seed,
    signal: stop.signal,
    eventsPerSecond: asFastAsPossible,
    async execute(command, input) {
      commands.push([command.name, input]);
      if (commands.length === 200) stop.abort();
      if (!accepts(command, input as { cartId?: string }))
        throw new CommandRejected('for a test') satisfies RefoldError;
    },
  });
  return commands;
}
