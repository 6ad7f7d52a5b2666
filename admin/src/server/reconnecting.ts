import type { TypedDocumentString } from '../gql/graphql.ts';
import { ApiError, subscribe } from './api.ts';

/**
 * `paused`: the tab is hidden. `lost`: a connection was there, or could not be opened, and it is tried again. `refused`: it will not be tried
 * again.
 */
export type Connection = 'connecting' | 'live' | 'lost' | 'paused' | 'refused';

export interface Follower<R> {
  readonly onData: (data: R) => void;
  readonly onConnection: (connection: Connection, error?: ApiError) => void;
}

const longestDelayMs = 15_000;

/** Keeps a subscription open: connects again after a loss, and does without one while the tab is hidden. Returns a function that ends it. */
export function keepSubscribed<R, V>(
  operation: TypedDocumentString<R, V>,
  variables: V,
  { onData, onConnection }: Follower<R>,
): () => void {
  let attempt = 0;
  let running: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function run(): Promise<void> {
    const controller = new AbortController();
    running = controller;
    const { signal } = controller;
    if (attempt === 0) onConnection('connecting');
    const onOpen = () => {
      attempt = 0;
      onConnection('live');
    };
    const error = await subscribe(operation, variables, { onOpen, onData }, signal).then(
      () => undefined,
      (failure: unknown) => failure,
    );
    if (signal.aborted) return;
    if (error instanceof ApiError && isFinal(error)) return onConnection('refused', error);
    onConnection('lost', error instanceof ApiError ? error : undefined);
    attempt += 1;
    timer = setTimeout(() => void run(), Math.min(500 * 2 ** attempt, longestDelayMs));
  }

  function stop(): void {
    clearTimeout(timer);
    running?.abort();
  }

  // Browsers allow six connections to a server; tabs in the background must not use them up.
  function onVisibility(): void {
    stop();
    attempt = 0;
    if (document.hidden) onConnection('paused');
    else void run();
  }

  document.addEventListener('visibilitychange', onVisibility);
  void run();
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    stop();
  };
}

function isFinal({ code }: ApiError): boolean {
  return code === 'UNAUTHENTICATED' || code === 'FORBIDDEN' || code === 'BAD_USER_INPUT';
}
