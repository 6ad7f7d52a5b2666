import { invalidDeclaration } from '../../errors.ts';
import type { ErrorPolicy } from '../projection/projection.ts';

/** Checks the option `onError` and fills in defaults. */
export function errorPolicy(subject: string, given: ErrorPolicy['policy'] | ErrorPolicy = 'stop'): ErrorPolicy {
  const policy = typeof given === 'string' ? { policy: given } : given;
  const policies = ['stop', 'skip', 'dead-letter'];
  if (!policies.includes(policy.policy)) {
    throw invalidDeclaration(subject, `onError is 'stop', 'skip' or 'dead-letter', found '${String(policy.policy)}'.`);
  }
  if (policy.onSkip && policy.policy !== 'skip') {
    throw invalidDeclaration(subject, `onError.onSkip belongs to the policy 'skip', found it with '${policy.policy}'.`);
  }
  return Object.freeze({ ...policy });
}
