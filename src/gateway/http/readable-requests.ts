import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/**
 * Says of requests that can't be read that they are the client's mistake: parameters of a URL that are no JSON, and bodies that end too
 * early. Yoga takes both for its own, and the log would be full of what strangers break off. A compressed body is refused as that.
 */
export function useReadableRequests(): Plugin {
  return {
    onRequestParse({ request: { headers }, requestParser, setRequestParser }) {
      if ((headers.get('content-encoding') ?? 'identity') !== 'identity') throw compressed();
      if (requestParser === undefined) return;
      setRequestParser(async (request) => {
        try {
          return await requestParser(request);
        } catch (error) {
          if (error instanceof SyntaxError) throw unreadable("'variables' and 'extensions' are JSON.");
          // How node:http tells that a connection broke off, or sent chunks that are none.
          if (error instanceof Error && 'code' in error && error.code === 'ECONNRESET')
            throw unreadable('The request ended before its body did.');
          throw error;
        }
      });
    },
  };
}

function compressed(): GraphQLError {
  return new GraphQLError('Send the body without content-encoding: compressed ones are not read.', {
    extensions: { code: 'UNSUPPORTED_MEDIA_TYPE', http: { status: 415, headers: { 'accept-encoding': 'identity' } } },
  });
}

function unreadable(problem: string): GraphQLError {
  return new GraphQLError(problem, { extensions: { code: 'BAD_REQUEST', http: { status: 400 } } });
}
