import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { TypedDocumentString } from '../gql/graphql.ts';
import { ApiError, request } from './api.ts';

export interface QueryState<R> {
  /** The last answer. While other variables are loaded, the answer for the old ones. */
  readonly data: R | undefined;
  readonly error: ApiError | undefined;
  readonly isLoading: boolean;
  /** Asks again, with the same variables. */
  reload(): void;
}

/** The answer of a query. It is asked again when the variables change. Undefined variables: nothing is asked. */
export function useQuery<R, V>(operation: TypedDocumentString<R, V>, variables: V | undefined): QueryState<R> {
  const [state, setState] = useState<Omit<QueryState<R>, 'reload'>>({
    data: undefined,
    error: undefined,
    isLoading: true,
  });
  const [round, setRound] = useState(0);
  const key = variables === undefined ? undefined : JSON.stringify(variables);
  const current = useRef(variables);
  current.current = variables;

  // `key` stands for the variables, `round` asks again
  useEffect(() => {
    if (current.current === undefined) return setState({ data: undefined, error: undefined, isLoading: false });
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    request(operation, current.current, controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ data, error: undefined, isLoading: false });
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setState((before) => ({ ...before, error: apiError(error), isLoading: false }));
      },
    );
    return () => controller.abort();
  }, [operation, key, round]);

  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { ...state, reload };
}

export function apiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(String(error), 'INTERNAL_SERVER_ERROR');
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly next?: string | null;
  /** The read stores that do not respond, if the list is over all of them. */
  readonly storesAway?: readonly string[];
}

export interface PagesState<R, T> extends QueryState<R> {
  readonly items: readonly T[];
  /** Counted from 1. */
  readonly page: number;
  readonly hasNext: boolean;
  readonly storesAway: readonly string[];
  forward(): void;
  back(): void;
}

/** A list that the server returns page by page. It starts again when the variables change. */
export function usePages<R, V extends { after?: string | null | undefined }, T>(
  operation: TypedDocumentString<R, V>,
  variables: Omit<V, 'after'> | undefined,
  pageOf: (data: R) => Page<T> | null | undefined,
): PagesState<R, T> {
  const key = JSON.stringify(variables);
  const [place, setPlace] = useState<{ key: string; afters: readonly string[] }>({ key, afters: [] });
  const afters = place.key === key ? place.afters : [];
  const query = useQuery(operation, variables && ({ ...variables, after: afters.at(-1) ?? null } as V));
  const page = query.data && pageOf(query.data);
  const next = page?.next;
  return {
    ...query,
    items: page?.items ?? [],
    page: afters.length + 1,
    hasNext: typeof next === 'string',
    storesAway: page?.storesAway ?? [],
    forward: () => typeof next === 'string' && setPlace({ key, afters: [...afters, next] }),
    back: () => setPlace({ key, afters: afters.slice(0, -1) }),
  };
}
