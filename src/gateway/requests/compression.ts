import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib';
import type { Plugin } from 'graphql-yoga';

/** How a body is compressed, as `content-encoding` says it. */
export type Encoding = keyof typeof compressors;

// The fastest level of each: the next ones take two to three times as long, and make a page of rows smaller by a twentieth.
const compressors = {
  zstd: (body: Body) => asZstd(body, { params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
  br: (body: Body) => asBrotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  gzip: (body: Body) => asGzip(body, { level: 1 }),
} as const;

type Body = string | Uint8Array;
const [asZstd, asBrotli, asGzip] = [promisify(zstdCompress), promisify(brotliCompress), promisify(gzip)];

// In the order of their speed.
const encodings: readonly Encoding[] = ['zstd', 'br', 'gzip'];

/**
 * Bytes. A page of 20 rows is smaller, and takes 0.16 ms of processor time in all; to compress it takes another 0.12 to 0.2 ms. It fits into
 * the packets that a connection may send at once, so it would hardly arrive earlier.
 */
export const leastCompressed = 4096;

/** Compresses a body on another thread. */
export function compress(encoding: Encoding, body: Body): Promise<Buffer> {
  return compressors[encoding](body);
}

/** The encoding that a client likes best, by the weights that it gives; of those that it likes as much, the fastest. */
export function acceptedEncoding(header: string | undefined | null): Encoding | undefined {
  const weights = new Map<string, number>();
  for (const part of header?.toLowerCase().split(',') ?? []) {
    const [name = '', ...parameters] = part.split(';').map((each) => each.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    weights.set(name, weight === undefined ? 1 : Number(weight.slice(2)) || 0);
  }
  const weightOf = (name: string) => weights.get(name) ?? weights.get('*') ?? 0;
  const [best] = encodings.filter((name) => weightOf(name) > 0).toSorted((a, b) => weightOf(b) - weightOf(a));
  // What is not named may be sent as it is. A client that would rather have that says so.
  return best !== undefined && weightOf(best) >= (weights.get('identity') ?? 0) ? best : undefined;
}

/** For caches: what the answer depends on, beside what it depends on already. */
export function varyByEncoding(vary: string | undefined | null): string {
  return vary ? `${vary}, accept-encoding` : 'accept-encoding';
}

/** Compresses what yoga answers whole. Streams have no length, and are sent as they come. */
export function useCompression(): Plugin {
  return {
    async onResponse({ request, response, setResponse, fetchAPI }) {
      const { headers, status, statusText } = response;
      const length = Number(headers.get('content-length') ?? 0);
      // Where it varies by encoding, somebody has chosen one.
      if (length < leastCompressed || headers.get('vary')?.includes('accept-encoding')) return;
      headers.set('vary', varyByEncoding(headers.get('vary')));
      const encoding = acceptedEncoding(request.headers.get('accept-encoding'));
      if (!encoding) return;
      const body = await compress(encoding, new Uint8Array(await response.arrayBuffer()));
      headers.set('content-encoding', encoding);
      headers.set('content-length', String(body.length));
      setResponse(new fetchAPI.Response(new Uint8Array(body), { status, statusText, headers }));
    },
  };
}
