import { createAdvisoryOwnership } from '../../src/store/advisory-ownership.ts';
import { createLeaseOwnership } from '../../src/store/lease-ownership.ts';

// Owns a processor until it is killed: node ownership-holder.ts KIND URL NAME
const [, , kind, url = '', name = ''] = process.argv;
const ownership = kind === 'lease' ? createLeaseOwnership({ url, leaseSeconds: 1 }) : createAdvisoryOwnership(url);
const lock = await ownership.tryAcquire('processor', name, 1);
process.stdout.write(lock ? 'held\n' : 'refused\n');
