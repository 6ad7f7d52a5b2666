import type { ServerResponse } from 'node:http';
import { stoppedBeforeAnswer } from '../requests/unknown-outcome.ts';

/**
 * Responds to a request that is not finished when the process ends. If it was cut off, the client could not tell it from a request that
 * never arrived, and proxies would send it again: a mutation would run twice.
 */
export function lastWord(res: ServerResponse): void {
  if (res.headersSent) return;
  const error = res.req.complete ? stoppedBeforeAnswer() : undone;
  const body = JSON.stringify({ errors: [error] });
  res.writeHead(503, { 'content-type': 'application/json; charset=utf-8', connection: 'close' }).end(body);
}

// The request body had not arrived.
const undone = {
  message: 'This process is stopping. Nothing was done. Try again.',
  extensions: { code: 'RATE_LIMITED' },
};
