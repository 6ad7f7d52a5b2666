import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib';
import type { Plugin } from 'graphql-yoga';

/** A compression method, as named in `content-encoding`. */
export type Encoding = keyof typeof compressors;

// The fastest level of each. The next levels take two to three times as long, and make a page of rows a twentieth smaller.
const compressors = {
  zstd: (body: Body) => asZstd(body, { params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
  br: (body: Body) => asBrotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  gzip: (body: Body) => asGzip(body, { level: 1 }),
} as const;

type Body = string | Uint8Array;
const [asZstd, asBrotli, asGzip] = [promisify(zstdCompress), promisify(brotliCompress), promisify(gzip)];

// Fastest first.
const encodings: readonly Encoding[] = ['zstd', 'br', 'gzip'];

/**
 * The minimum size of a compressed body, in bytes. A page of 20 rows is smaller, and costs 0.16 ms of processor time in all; compressing it
 * would cost another 0.12 to 0.2 ms. It fits into the packets that a connection may send at once, so it would hardly arrive earlier.
 */
export const leastCompressed = 4096;

/** Compresses a body on another thread. */
export function compress(encoding: Encoding, body: Body): Promise<Buffer> {
  return compressors[encoding](body);
}

/** Returns the encoding with the highest weight for the client; among equal weights the fastest. */
export function acceptedEncoding(header: string | undefined | null): Encoding | undefined {
  const weights = new Map<string, number>();
  for (const part of header?.toLowerCase().split(',') ?? []) {
    const [name = '', ...parameters] = part.split(';').map((each) => each.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    weights.set(name, weight === undefined ? 1 : Number(weight.slice(2)) || 0);
  }
  const weightOf = (name: string) => weights.get(name) ?? weights.get('*') ?? 0;
  const [best] = encodings.filter((name) => weightOf(name) > 0).toSorted((a, b) => weightOf(b) - weightOf(a));
  // `identity` is always allowed unless excluded. If the client prefers it, nothing is compressed.
  return best !== undefined && weightOf(best) >= (weights.get('identity') ?? 0) ? best : undefined;
}

/** Adds `accept-encoding` to the `vary` header, for caches. */
export function varyByEncoding(vary: string | undefined | null): string {
  return vary ? `${vary}, accept-encoding` : 'accept-encoding';
}

/** Compresses yoga's complete responses. Streams have no length and are sent as they come. */
export function useCompression(): Plugin {
  return {
    async onResponse({ request, response, setResponse, fetchAPI, serverContext }) {
      const { headers, status, statusText } = response;
      const { res } = serverContext as { readonly res?: ServerResponse }; // from the adapter for node:http
      const length = Number(headers.get('content-length') ?? 0);
      // If it varies by encoding already, an encoding was chosen before.
      if (length < leastCompressed || headers.get('vary')?.includes('accept-encoding')) return;
      // The header that is set here replaces the one for cross-origin requests.
      headers.set('vary', varyByEncoding(headers.get('vary') ?? res?.getHeader('vary')?.toString()));
      const encoding = acceptedEncoding(request.headers.get('accept-encoding'));
      if (!encoding) return;
      const body = await compress(encoding, new Uint8Array(await response.arrayBuffer()));
      headers.set('content-encoding', encoding);
      headers.set('content-length', String(body.length));
      setResponse(new fetchAPI.Response(new Uint8Array(body), { status, statusText, headers }));
    },
  };
}
