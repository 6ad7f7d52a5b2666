import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/**
 * Refuses bodies that are too large by their announced length; node:http never reads more than that. Only a body without a length is
 * counted while it is read. (Yoga's own limit wraps every body in another request, which halves its throughput.)
 */
export function useBodyLimit(maxBytes: number): Plugin {
  return {
    onRequestParse({ request, requestParser, setRequestParser, fetchAPI }) {
      const announced = request.headers.get('content-length');
      if (announced !== null && Number(announced) > maxBytes) throw tooLarge(maxBytes);
      if (announced !== null || requestParser === undefined || request.method !== 'POST') return;
      setRequestParser(async (given) => {
        const body = await readAll(given.body, maxBytes);
        return requestParser(
          new fetchAPI.Request(given.url, { method: given.method, headers: given.headers, signal: given.signal, body }),
        );
      });
    },
  };
}

async function readAll(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // `for await` would destroy the socket on early exit, and the refusal could not be written.
  const reader = body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    length += part.value.byteLength;
    if (length > maxBytes) throw tooLarge(maxBytes);
    chunks.push(part.value);
  }
  return Buffer.concat(chunks);
}

function tooLarge(maxBytes: number): GraphQLError {
  return new GraphQLError(`The request's body is larger than ${maxBytes} bytes.`, {
    extensions: { code: 'REQUEST_TOO_LARGE', http: { status: 413, headers: { connection: 'close' } } },
  });
}
