import { useCSRFPrevention } from '@graphql-yoga/plugin-csrf-prevention';
import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/**
 * CSRF prevention: refuses requests that a page of another site can send with a visitor's cookies and without a preflight, such as forms
 * and plain text. A GET changes nothing, and other sites cannot read its response; so it is refused only if the browser says that it comes
 * from another site.
 */
export function useCsrfPrevention(): Plugin {
  const prevention = useCSRFPrevention({ requestHeaders: ['refold-csrf', 'apollo-require-preflight'] });
  return {
    onRequestParse(payload) {
      const { method, headers } = payload.request;
      const site = headers.get('sec-fetch-site');
      const isOwn = site === null || site === 'same-origin' || site === 'none';
      // Other methods do nothing, and are refused elsewhere.
      if (method === 'GET' ? isOwn : method !== 'POST') return undefined;
      try {
        return prevention.onRequestParse?.(payload);
      } catch (error) {
        throw error instanceof GraphQLError ? refusal() : error;
      }
    },
  };
}

function refusal(): GraphQLError {
  return new GraphQLError(
    "A page of another site could have sent this. Send 'content-type: application/json', or the header 'refold-csrf' with any value.",
    { extensions: { code: 'FORBIDDEN', http: { status: 403 } } },
  );
}
