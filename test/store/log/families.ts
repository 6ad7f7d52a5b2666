import { z } from 'zod';
import { defineEvents } from '../../../src/events/event-family.ts';

export const account = defineEvents('account', {
  Opened: z.object({ owner: z.string() }),
  Deposited: z.object({ amount: z.int() }),
  Withdrawn: z.object({ amount: z.int() }),
});

export const transfer = defineEvents('transfer', { Booked: z.object({ note: z.string() }) });

export const deposited = (amount: number) => ({ type: 'Deposited', payload: { amount } }) as const;

/** Everything that an async iterable yields. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
