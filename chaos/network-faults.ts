import { setTimeout as pause } from 'node:timers/promises';
import { seeded } from '../test/support/account-traffic.ts';
import type { TcpProxy } from '../test/support/tcp-proxy.ts';
import type { Action } from './plan.ts';

export type NetworkFault = Extract<
  Action,
  { readonly kind: 'delay' | 'half-open' | 'one-way stall' | 'split packets' | 'cut after commit' }
>;

export interface FaultyNetwork {
  readonly proxy: TcpProxy;
  /** Aborts when all faults end. */
  readonly healed: AbortController;
}

/** Begins the fault. The promise resolves at its end, if it has one. The end of one fault ends all faults of that network. */
export function networkFault({ proxy, healed }: FaultyNetwork, fault: NetworkFault): Promise<void> | undefined {
  switch (fault.kind) {
    case 'delay':
      proxy.delay(fault.ms);
      break;
    case 'half-open':
      proxy.swallow();
      break;
    case 'one-way stall':
      if (fault.from === 'server') proxy.stallFromServer();
      else proxy.stallToServer();
      break;
    case 'split packets':
      proxy.split(seeded(fault.draw * 1_000));
      break;
    case 'cut after commit':
      void proxy.cutAfter((chunk) => /\bcommit\b/i.test(chunk.toString('latin1')));
      return undefined;
  }
  return pause(fault.seconds * 1_000, undefined, { signal: healed.signal })
    .catch(() => {})
    .then(() => proxy.resume());
}
