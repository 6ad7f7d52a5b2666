import type { ServerResponse } from 'node:http';
import { hasBegunMutation, stoppedBeforeAnswer } from '../requests/unknown-outcome.ts';

/**
 * Responds to a request that is not finished when the process ends. If it was cut off, the client could not tell it from a request that
 * never arrived, and proxies would send it again: a mutation would run twice.
 */
export function sendShutdownResponse(res: ServerResponse): void {
  if (res.headersSent) return;
  const body = JSON.stringify({ errors: [stoppedBeforeAnswer(hasBegunMutation(res))] });
  res.writeHead(503, { 'content-type': 'application/json; charset=utf-8', connection: 'close' }).end(body);
}
