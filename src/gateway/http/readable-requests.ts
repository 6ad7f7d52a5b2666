import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';

const paths: ReadonlySet<string> = new Set(['/graphql', '/graphql/']);

/**
 * Reports unreadable requests as the client's error: URL parameters that are not JSON, and bodies that end too early. Yoga would report
 * both as its own errors, and aborted requests would fill the log. Compressed bodies are refused as well, and other paths than `/graphql`: yoga
 * accepts every URL that ends like it, which rules of a proxy for this path would miss.
 */
export function useReadableRequests(): Plugin {
  return {
    onRequest({ url, fetchAPI, endResponse }) {
      if (!paths.has(url.pathname)) endResponse(new fetchAPI.Response(null, { status: 404 }));
    },
    onRequestParse({ request: { headers }, requestParser, setRequestParser }) {
      if ((headers.get('content-encoding') ?? 'identity') !== 'identity') throw compressed();
      if (requestParser === undefined) return;
      setRequestParser(async (request) => {
        try {
          return await requestParser(request);
        } catch (error) {
          if (error instanceof SyntaxError) throw unreadable("'variables' and 'extensions' are JSON.");
          // The error of node:http for a broken connection or invalid chunks.
          if (error instanceof Error && 'code' in error && error.code === 'ECONNRESET')
            throw unreadable('The request ended before its body was complete.');
          throw error;
        }
      });
    },
  };
}

function compressed(): GraphQLError {
  return new GraphQLError('Compressed bodies are not supported: send the body without content-encoding.', {
    extensions: { code: 'UNSUPPORTED_MEDIA_TYPE', http: { status: 415, headers: { 'accept-encoding': 'identity' } } },
  });
}

function unreadable(problem: string): GraphQLError {
  return new GraphQLError(problem, { extensions: { code: 'BAD_REQUEST', http: { status: 400 } } });
}
