import assert from 'node:assert/strict';
import type { Refold } from '../refold.ts';
import { untilTrue, type WaitOptions } from './until-true.ts';

/**
 * Waits until a query returns exactly this `data`. Fails on timeout, with the difference to the last response or with its errors.
 *
 * @example
 * await untilAnswer(refold, '{ cartSummary(cartId: "c1") { totalAmount } }', { cartSummary: { totalAmount: '25.00' } });
 */
export async function untilAnswer(
  refold: Pick<Refold, 'graphql'>,
  query: string,
  expected: Readonly<Record<string, unknown>>,
  options: WaitOptions & { readonly variables?: Readonly<Record<string, unknown>> } = {},
): Promise<void> {
  await untilTrue(async () => {
    const { data, errors } = await refold.graphql(query, options.variables);
    if (errors) return new Error(`Expected an answer, but found: ${errors.map(({ message }) => message).join(' ')}`);
    try {
      assert.deepEqual(JSON.parse(JSON.stringify(data ?? null)), expected);
      return undefined;
    } catch (error) {
      return error as Error; // an AssertionError
    }
  }, options);
}
