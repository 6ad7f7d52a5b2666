import type { ApiError } from '../server/api.ts';
import { Notice } from './marks.tsx';

interface ProblemProps {
  readonly error: ApiError;
  readonly retry?: () => void;
}

/** Why something can't be shown, and a way to try again. */
export function Problem({ error, retry }: ProblemProps) {
  if (error.code === 'FORBIDDEN')
    return (
      <Notice tone="quiet" title="Not allowed.">
        {error.message}
      </Notice>
    );
  return (
    <div role="alert">
      <Notice tone="bad" title="This can’t be shown.">
        {error.message} {error.code !== 'UNREACHABLE' && <code>{error.code}</code>}{' '}
        {retry && (
          <button type="button" onClick={retry}>
            Try again
          </button>
        )}
      </Notice>
    </div>
  );
}
