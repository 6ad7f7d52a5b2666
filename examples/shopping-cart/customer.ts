import { z } from 'zod';
import { CommandRejected, defineCommand, defineState, type PayloadOf } from '../../src/index.ts';
import { customer, profile } from './events.ts';

type Profile = PayloadOf<typeof customer, 'CustomerRegistered'>['profile'];

interface Customer {
  readonly profile: Profile | null;
}

export const customerState = defineState(customer, (): Customer => ({ profile: null }), {
  CustomerRegistered: (_, { payload }) => ({ profile: payload.profile }),
  CustomerProfileUpdated: (_, { payload }) => ({ profile: payload.profile }),
});

const customerId = z.string().min(1).max(100);

export const registerCustomer = defineCommand({
  name: 'registerCustomer',
  description: 'Registers a new customer.',
  input: z.object({ customerId, profile }),
  state: customerState,
  emits: ['CustomerRegistered'],
  stream: (input) => input.customerId,
  decide({ customerId, profile }, { profile: registered }, { now }) {
    if (registered) throw new CommandRejected(`Customer '${customerId}' is registered already.`);
    return { type: 'CustomerRegistered', payload: { profile, registeredAt: now } };
  },
});

export const updateCustomerProfile = defineCommand({
  name: 'updateCustomerProfile',
  description: 'Replaces the profile of a registered customer. Does nothing if the profile is the same.',
  input: z.object({ customerId, profile }),
  state: customerState,
  emits: ['CustomerProfileUpdated'],
  stream: (input) => input.customerId,
  decide({ customerId, profile }, { profile: registered }, { now }) {
    if (!registered) throw new CommandRejected(`There is no customer '${customerId}'. Register it first.`);
    return sameProfile(registered, profile)
      ? []
      : { type: 'CustomerProfileUpdated', payload: { profile, updatedAt: now } };
  },
});

function sameProfile(a: Profile, b: Profile): boolean {
  return a.name === b.name && a.email === b.email && a.city === b.city;
}
