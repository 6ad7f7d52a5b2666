import { once } from 'node:events';
import { createAdvisoryOwnership } from '../../../src/store/ownership/advisory-ownership.ts';
import { createLeaseOwnership } from '../../../src/store/ownership/lease-ownership.ts';
import { patiently } from './patient-owner.ts';

// Owns a processor, blocks its event loop for two leases, and says what it then owns: node stalled-holder.ts KIND URL NAME LEASE_SECONDS
const [, , kind, url = '', name = '', seconds = ''] = process.argv;
const options = { url, leaseSeconds: Number(seconds) };
const ownership = kind === 'lease' ? createLeaseOwnership(options) : createAdvisoryOwnership(options);
const lock = await patiently(ownership, name);
await new Promise<void>((resolve) => process.stdout.write('held\n', () => resolve()));
for (const end = performance.now() + 2000 * Number(seconds); performance.now() < end; );
// Before any timer has run, and after all of them.
lock?.verify();
await new Promise((resolve) => setTimeout(resolve, 100));
lock?.verify();
await new Promise<void>((resolve) => process.stdout.write('still the owner\n', () => resolve()));
await once(process.stdin.resume(), 'end'); // the test has seen it
await ownership.close();
