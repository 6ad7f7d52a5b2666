import type { ServerResponse } from 'node:http';

/**
 * What a request is answered that is not done when the process ends. Cut off, its client could not tell that from a request that never
 * arrived, and proxies send those again: a mutation would run twice.
 */
export function lastWord(res: ServerResponse): void {
  if (res.headersSent) return;
  const error = res.req.complete ? unknown : undone;
  const body = JSON.stringify({ errors: [error] });
  res.writeHead(503, { 'content-type': 'application/json; charset=utf-8', connection: 'close' }).end(body);
}

const unknown = {
  message:
    'The process stopped before it had the answer. What a mutation writes may have been written: send it again with the same idempotencyKey.',
  extensions: { code: 'OUTCOME_UNKNOWN' },
};

// Its body had not come.
const undone = {
  message: 'This process is stopping. Nothing was done. Try again.',
  extensions: { code: 'RATE_LIMITED' },
};
