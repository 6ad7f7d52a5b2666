import { createHash } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { CheckedPolicies } from '../../config/gateway-policies.ts';

type Persisted = NonNullable<CheckedPolicies['persistedOperations']>;

interface Params {
  readonly query?: string | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
}

/**
 * Returns the document of a request: the one that it names by hash (`extensions.persistedQuery.sha256Hash`, as Apollo and urql send it), or
 * the one that it contains, if that is allowed.
 *
 * @throws GraphQLError `PERSISTED_QUERY_NOT_FOUND`, `PERSISTED_QUERY_ONLY`; `PERSISTED_QUERY_NOT_SUPPORTED` if no operations are persisted,
 * which tells clients to send whole documents from then on; `BAD_USER_INPUT` if the document does not match the hash, or if there is no
 * document
 */
export function documentOf(persisted: Persisted | undefined, { query: sent, extensions }: Params): string {
  const query = sent || undefined; // a WebSocket message must have a query, and some clients send null
  const hash = hashIn(extensions);
  if (!persisted) {
    if (query === undefined && hash !== undefined)
      throw refusal('PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED');
    if (query === undefined) throw noDocument();
    return query;
  }
  const { documents, only } = persisted;
  if (hash !== undefined) {
    const known = Object.hasOwn(documents, hash) ? documents[hash] : undefined;
    if (known !== undefined && query !== undefined && query !== known)
      throw refusal(
        `The request has a document, and the hash '${hash}' of another one. Send the hash alone, or the document alone.`,
        'BAD_USER_INPUT',
      );
    if (known !== undefined) return known;
    // This code tells clients to send the document itself, if that is allowed.
    if (query === undefined || only) throw refusal('PersistedQueryNotFound', 'PERSISTED_QUERY_NOT_FOUND');
  }
  if (query === undefined) throw noDocument();
  if (only && !Object.hasOwn(documents, createHash('sha256').update(query).digest('hex')))
    throw refusal('This API executes persisted operations only.', 'PERSISTED_QUERY_ONLY');
  return query;
}

export function usePersistedOperations(persisted: Persisted | undefined): Plugin {
  return {
    onParams({ params, setParams }) {
      const query = documentOf(persisted, params);
      if (query !== params.query) setParams({ ...params, query });
    },
  };
}

function hashIn(extensions: Params['extensions']): string | undefined {
  const named = extensions?.persistedQuery;
  if (typeof named !== 'object' || named === null || !('sha256Hash' in named)) return undefined;
  return typeof named.sha256Hash === 'string' ? named.sha256Hash : undefined;
}

function noDocument(): GraphQLError {
  return refusal("The request has no document. Send it as 'query'.", 'BAD_USER_INPUT');
}

function refusal(message: string, code: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code, http: { status: 400 } } });
}
