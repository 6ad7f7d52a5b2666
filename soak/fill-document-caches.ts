import fc from 'fast-check';
import { randomOperation } from '../test/refold/random-operations.ts';

/** More than a gateway's caches hold: its heap grows until its document caches are full. */
const charactersToSend = 1_500_000;

/** Sends random documents to a gateway, all different, and ignores the responses. */
export async function fillDocumentCaches(url: string, seed: number): Promise<void> {
  let sent = 0;
  for (let drawn = 0; sent < charactersToSend; drawn++) {
    for (const operation of fc.sample(randomOperation, { numRuns: 25, seed: seed * 100_000 + 50_000 + drawn })) {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'filler' },
        body: JSON.stringify(operation),
      });
      await response.arrayBuffer();
      sent += operation.query.length;
    }
  }
}
