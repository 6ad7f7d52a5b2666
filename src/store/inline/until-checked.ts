import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../errors.ts';
import { declaredFilter } from '../../events/event-names.ts';

// Between two attempts, an append holds no lock and no connection.
const lookAgainMs = 50;

/**
 * Sends appends again while their unique values can't be checked. The returned function throws `UNIQUE_CHECK_UNAVAILABLE` after `timeoutMs`;
 * nothing was written then.
 */
export function createUntilChecked(timeoutMs = 5000): <T>(send: () => Promise<T>) => Promise<T> {
  return async (send) => {
    const start = performance.now();
    for (;;) {
      try {
        return await send();
      } catch (error) {
        if (!isUnchecked(error)) throw error;
        const waitedMs = Math.round(performance.now() - start);
        if (waitedMs >= timeoutMs)
          throw new RefoldError(error.code, error.message, { ...error.fields, waitedMs }, { cause: error.cause });
        await pause(Math.min(lookAgainMs, timeoutMs - waitedMs));
      }
    }
  };
}

/** The error with the declared names of its event types; undefined if it is another error. */
export function uncheckedError(
  error: unknown,
  families: Parameters<typeof declaredFilter>[0],
): RefoldError | undefined {
  if (!isUnchecked(error)) return undefined;
  const stored = Array.isArray(error.fields.types) ? error.fields.types : [];
  const filter = stored.map((name) => {
    const [family = '', type = ''] = String(name).split('.');
    return { family, types: [type] };
  });
  const types = declaredFilter(families, filter).flatMap((one) => one.types.map((type) => `${one.family}.${type}`));
  return new RefoldError(error.code, error.message, { ...error.fields, types }, { cause: error.cause });
}

function isUnchecked(error: unknown): error is RefoldError {
  return error instanceof RefoldError && error.code === 'UNIQUE_CHECK_UNAVAILABLE';
}
