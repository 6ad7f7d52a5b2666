import { invalidDeclaration, RefoldError } from '../../errors.ts';
import type { ErrorPolicy, OnError } from '../projection/projection.ts';
import { checkRetries, type RetryRule } from '../projection/retry-rules.ts';

/** Checks the option `onError` and fills in defaults. */
export function errorPolicy(
  subject: string,
  given: ErrorPolicy['policy'] | ErrorPolicy = 'stop',
  mode: 'async' | 'inline' = 'async',
): OnError {
  const policy = typeof given === 'string' ? { policy: given } : given;
  const policies = ['stop', 'skip', 'dead-letter'];
  if (!policies.includes(policy.policy)) {
    throw invalidDeclaration(subject, `onError is 'stop', 'skip' or 'dead-letter', found '${String(policy.policy)}'.`);
  }
  if (policy.onSkip && policy.policy !== 'skip') {
    throw invalidDeclaration(subject, `onError.onSkip belongs to the policy 'skip', found it with '${policy.policy}'.`);
  }
  const retries = checkRetries(subject, policy.retries ?? []);
  if (mode === 'inline' && retries.length > 0) {
    throw invalidDeclaration(
      subject,
      `onError.retries waits before an event is tried again, and with mode 'inline' an append would have to wait. Leave 'retries' out, or use mode 'async'.`,
    );
  }
  return Object.freeze({ ...policy, retries: retries.map(notOfPureCode) });
}

/** A rule for all errors does not concern `key`, `evolve` and upcasters: they would fail again. */
function notOfPureCode(rule: RetryRule): RetryRule {
  return Object.freeze({ ...rule, on: rule.on ?? ((error: unknown) => !isOfPureCode(error)) });
}

function isOfPureCode(error: unknown): boolean {
  return error instanceof RefoldError && error.code === 'EVOLVE_FAILED';
}
