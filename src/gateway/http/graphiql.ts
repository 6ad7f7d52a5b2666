import { createHash } from 'node:crypto';
import { type Plugin, shouldRenderGraphiQL } from 'graphql-yoga';
import { acceptedEncoding, compress, type Encoding, varyByEncoding } from '../requests/compression.ts';

/** Serves GraphiQL at the GraphQL endpoint. The page comes from the package and works without a network. */
export function useGraphiql(defaultQuery: string | undefined, isCompressed: boolean): Plugin {
  let made: Promise<Page> | undefined; // created on first use: it has nine megabytes
  return {
    async onRequest({ request, url, fetchAPI, endResponse }) {
      if (!shouldRenderGraphiQL(request) || url.pathname !== '/graphql') return;
      made ??= createPage(defaultQuery);
      const page = await made;
      const headers = { ...page.headers, vary: varyByEncoding('accept') };
      if (request.headers.get('if-none-match')?.includes(page.etag))
        return endResponse(new fetchAPI.Response(null, { status: 304, headers }));
      const encoding = isCompressed ? acceptedEncoding(request.headers.get('accept-encoding')) : undefined;
      const body = await page.bodyIn(encoding);
      const encoded = encoding ? { ...headers, 'content-encoding': encoding } : headers;
      endResponse(new fetchAPI.Response(body, { headers: encoded }));
    },
  };
}

interface Page {
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Each encoding is compressed once. */
  bodyIn(encoding: Encoding | undefined): string | Promise<Uint8Array<ArrayBuffer>>;
}

async function createPage(defaultQuery: string | undefined): Promise<Page> {
  // Its code takes 30 MB of memory, which a process that shows no GraphiQL does without.
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const page = renderGraphiQL({
    title: 'Refold',
    subscriptionsProtocol: 'WS',
    ...(defaultQuery === undefined ? {} : { defaultQuery }),
  });
  const etag = `"${sha256(page).slice(0, 22)}"`;
  const bodies = new Map<Encoding, Promise<Uint8Array<ArrayBuffer>>>();
  return {
    etag,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policyOf(page),
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache', // browsers cache it, and revalidate by its tag
      etag: `W/${etag}`, // the same page in each encoding
    },
    bodyIn(encoding) {
      if (!encoding) return page;
      const body = bodies.get(encoding) ?? compress(encoding, page).then((bytes) => new Uint8Array(bytes));
      bodies.set(encoding, body);
      return body;
    },
  };
}

/**
 * The page runs only its own script, connects only to its own origin, and cannot be framed. So text of a row or an error cannot run as
 * script. Its editor creates workers from text, and inline styles.
 */
function policyOf(page: string): string {
  const script = page.slice(page.indexOf('<script>') + '<script>'.length, page.lastIndexOf('</script>'));
  return [
    "default-src 'none'",
    `script-src 'sha256-${sha256(script)}'`,
    'worker-src blob:',
    "connect-src 'self'",
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
