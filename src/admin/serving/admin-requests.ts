import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { HttpHandler } from '../../gateway/requests/http-handler.ts';
import type { AuditFilter } from '../../runtime/inspection/audit-log.ts';
import { isOutage, isRefusedValue } from '../../store/postgres/database-errors.ts';
import type { RecognizeCaller } from '../access/recognize-caller.ts';
import type { Caller } from '../access/require-right.ts';
import { refusedValue } from './mask-errors.ts';

export interface AdminRequestsOptions {
  readonly recognize: RecognizeCaller;
  /** Answers an operation of a caller. */
  readonly operate: (req: IncomingMessage, res: ServerResponse, caller: Caller) => void;
  /** The audit log as CSV. */
  readonly audit: (filter: AuditFilter) => AsyncGenerator<string>;
  readonly logger: Logger;
}

// Nothing of an answer may be kept or run by a browser.
const headers = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

/**
 * Handles `/admin/graphql` and `/admin/audit.csv`, each for callers that are recognized. Passes everything else on: the files of the page need no
 * credentials, because they hold nothing.
 *
 * A page of another site can do nothing here: credentials are in a header that browsers do not send by themselves, only JSON is accepted, which
 * such a page may not send, and there are no CORS headers.
 */
export function handleAdminRequests({ recognize, operate, audit, logger }: AdminRequestsOptions): HttpHandler {
  async function answer(req: IncomingMessage, res: ServerResponse, url: URL): Promise<void> {
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
    const isGraphql = url.pathname === '/admin/graphql';
    const method = isGraphql ? 'POST' : 'GET';
    if (req.method !== method) {
      res.setHeader('allow', method);
      return refuse(res, 405, 'BAD_REQUEST', `Use ${method}.`);
    }
    if (isGraphql && !/^application\/json\b/i.test(req.headers['content-type'] ?? ''))
      return refuse(res, 415, 'UNSUPPORTED_MEDIA_TYPE', 'Send the operation as application/json.');
    const caller = await recognize(req.headers);
    if (!caller) {
      res.setHeader('www-authenticate', 'Bearer');
      return refuse(res, 401, 'UNAUTHENTICATED', 'A token of the admin API is required: Authorization: Bearer TOKEN.');
    }
    if (isGraphql) return operate(req, res, caller);
    const filter = filterOf(url.searchParams);
    if (typeof filter === 'string') return refuse(res, 400, 'BAD_USER_INPUT', filter);
    await sendCsv(res, audit(filter));
  }

  return (req, res, next) => {
    const url = URL.parse(req.url ?? '', 'http://gateway');
    if (url?.pathname !== '/admin/graphql' && url?.pathname !== '/admin/audit.csv') return next(req, res);
    answer(req, res, url).catch((error: unknown) => {
      if (!res.headersSent && isRefusedValue(error)) return refuse(res, 400, 'BAD_USER_INPUT', refusedValue(error));
      logger.error({ err: error }, 'a request of the admin API failed');
      if (res.headersSent) res.destroy();
      else if (isOutage(error))
        refuse(res, 503, 'DATABASE_UNAVAILABLE', (error as Error).message); // of a RefoldError
      else refuse(res, 500, 'INTERNAL_SERVER_ERROR', 'Something went wrong. Details are in the server log.');
    });
  };
}

function refuse(res: ServerResponse, status: number, code: string, message: string): void {
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  res.end(JSON.stringify({ errors: [{ message, extensions: { code } }] }));
}

const parameters = ['projection', 'version', 'reactor', 'actor', 'since', 'until'] as const;

/** Or what is wrong with it. */
function filterOf(given: URLSearchParams): AuditFilter | string {
  for (const name of given.keys())
    if (!parameters.some((known) => known === name))
      return `Unknown parameter '${name}'. Known are ${parameters.join(', ')}.`;
  const texts = Object.fromEntries(given);
  const { version, ...others } = texts;
  if (version !== undefined && !/^[1-9]\d{0,8}$/.test(version))
    return `'version' is a number, found '${version.slice(0, 40)}'.`;
  for (const name of ['since', 'until'] as const) {
    const time = others[name];
    if (time !== undefined && !/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(time))
      return `'${name}' is a time such as 2026-01-31T12:00:00Z, found '${time.slice(0, 40)}'.`;
  }
  return { ...others, ...(version === undefined ? {} : { version: Number(version) }) };
}

/** Nothing is sent before the first part is there, so its failure has a status. */
async function sendCsv(res: ServerResponse, parts: AsyncGenerator<string>): Promise<void> {
  const first = await parts.next();
  res.writeHead(200, {
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': 'attachment; filename="audit.csv"',
  });
  for (let part = first; !part.done; part = await parts.next()) {
    if (res.destroyed) return;
    if (!res.write(part.value))
      await new Promise<void>((resolve) => void res.once('drain', resolve).once('close', resolve));
  }
  res.end();
}
