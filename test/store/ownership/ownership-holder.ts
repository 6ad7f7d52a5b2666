import { createAdvisoryOwnership } from '../../../src/store/ownership/advisory-ownership.ts';
import { createLeaseOwnership } from '../../../src/store/ownership/lease-ownership.ts';
import type { OwnershipLock } from '../../../src/store/ownership/ownership.ts';
import { unitOf } from './unit-of.ts';

// Owns a processor until it is killed: node ownership-holder.ts KIND URL NAME
const [, , kind, url = '', name = ''] = process.argv;
const ownership =
  kind === 'lease' ? createLeaseOwnership({ url, leaseSeconds: 300 }) : createAdvisoryOwnership({ url });
let lock: OwnershipLock | null = null;
// On a busy machine, connecting may take longer than the timeout for an answer.
while (!lock) lock = await ownership.tryAcquire(unitOf(name)).catch(() => null);
process.stdout.write('held\n');
