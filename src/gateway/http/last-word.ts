import type { ServerResponse } from 'node:http';

/**
 * Responds to a request that is not finished when the process ends. If it was cut off, the client could not tell it from a request that
 * never arrived, and proxies would send it again: a mutation would run twice.
 */
export function lastWord(res: ServerResponse): void {
  if (res.headersSent) return;
  const error = res.req.complete ? unknown : undone;
  const body = JSON.stringify({ errors: [error] });
  res.writeHead(503, { 'content-type': 'application/json; charset=utf-8', connection: 'close' }).end(body);
}

const unknown = {
  message:
    'The process stopped before the operation ended. A mutation may have been written: send it again with the same idempotencyKey.',
  extensions: { code: 'OUTCOME_UNKNOWN' },
};

// The request body had not arrived.
const undone = {
  message: 'This process is stopping. Nothing was done. Try again.',
  extensions: { code: 'RATE_LIMITED' },
};
