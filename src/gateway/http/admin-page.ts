import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import type { HttpHandler } from '../requests/http-handler.ts';

// `npm run build:admin` writes it, in the repository and in the package: both have `src/` or `dist/` beside each other.
const builtPage = join(import.meta.dirname, '../../../dist/admin-page');

const contentTypes: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

// The page runs and loads only files of its own origin, and cannot be framed. So text of a row or an error cannot run as script.
const securityHeaders = {
  'content-security-policy': "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const missing = 'The admin page is not built. In a clone of Refold, run `npm run build:admin`.\n';

/**
 * Serves the files of the admin page below `/admin/`. They are read once, into a map: a path that is not in it does not exist, so none leads
 * out of the folder. What is not a request for a file goes on, such as `/admin/graphql`.
 */
export function serveAdminPage(folder = builtPage): HttpHandler {
  let read: Promise<ReadonlyMap<string, PageFile>> | undefined;

  async function answer(path: string, req: IncomingMessage, res: ServerResponse): Promise<void> {
    read ??= readFiles(folder);
    const files = await read;
    if (!files.has('index.html')) read = undefined; // it may be built while the process runs
    if (!files.has('index.html')) return sendText(res, 503, missing);
    const file = files.get(path === '' ? 'index.html' : path);
    if (!file) return sendText(res, 404, 'The admin page has no such file.\n');
    await sendFile(file, req, res);
  }

  return (req, res, next) => {
    const path = pathOf(req);
    if (path === '/admin') {
      // Relative, because a proxy may serve the page below a prefix. Browsers keep the fragment, which holds the token.
      res.writeHead(308, { ...securityHeaders, location: 'admin/' }).end();
      return;
    }
    if (!path?.startsWith('/admin/') || path === '/admin/graphql') return next(req, res);
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.setHeader('allow', 'GET, HEAD');
      return sendText(res, 405, 'Files of the admin page can only be read.\n');
    }
    answer(path.slice('/admin/'.length), req, res).catch((error) => res.destroy(error));
  };
}

/** Without it, yoga would answer `/admin/graphql` as it answers `/graphql`: it looks only at the end of a path. */
export const refuseAdmin: HttpHandler = (req, res, next) => {
  const path = pathOf(req);
  if (path !== '/admin' && !path?.startsWith('/admin/')) return next(req, res);
  sendText(res, 404, "The admin page and its API are off. Set 'gateway.admin' to serve them.\n");
};

class PageFile {
  readonly headers: Readonly<Record<string, string>>;
  readonly etag: string;
  readonly #body: Buffer;
  readonly #compressed = new Map<PageEncoding, Promise<Buffer>>();

  constructor(path: string, body: Buffer) {
    this.#body = body;
    // Weak: the same file in each encoding.
    this.etag = `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    this.headers = {
      ...securityHeaders,
      'content-type': contentTypes[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
      // Vite puts the hash of its content into the name of each file in `assets/`.
      'cache-control': path.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
      vary: 'accept-encoding',
      etag: this.etag,
    };
  }

  /** Each encoding is compressed once. */
  bodyIn(encoding: PageEncoding | undefined): Buffer | Promise<Buffer> {
    if (!encoding) return this.#body;
    const body = this.#compressed.get(encoding) ?? compressors[encoding](this.#body);
    this.#compressed.set(encoding, body);
    return body;
  }
}

// Compressed as small as possible, unlike responses, since each file is compressed once in a process.
const compressors = { br: promisify<Buffer, Buffer>(brotliCompress), gzip: promisify<Buffer, Buffer>(gzip) } as const;
type PageEncoding = keyof typeof compressors;

async function sendFile(file: PageFile, req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.headers['if-none-match']?.includes(file.etag)) return void res.writeHead(304, file.headers).end();
  const accepted = req.headers['accept-encoding'] ?? '';
  const encoding = /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : undefined;
  const body = await file.bodyIn(encoding);
  const encoded = encoding ? { 'content-encoding': encoding } : {};
  res.writeHead(200, { ...file.headers, ...encoded, 'content-length': body.length });
  res.end(req.method === 'HEAD' ? undefined : body);
}

function sendText(res: ServerResponse, status: number, text: string): void {
  res.writeHead(status, { ...securityHeaders, 'content-type': 'text/plain; charset=utf-8' }).end(text);
}

function pathOf({ url }: IncomingMessage): string | undefined {
  return URL.parse(url ?? '', 'http://gateway')?.pathname;
}

/** Empty if there is no such folder. */
async function readFiles(folder: string): Promise<ReadonlyMap<string, PageFile>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const files = await Promise.all(
    paths.map(async (path) => {
      const name = path.slice(folder.length + 1).replaceAll(sep, '/');
      return [name, new PageFile(name, await readFile(path))] as const;
    }),
  );
  return new Map(files);
}
