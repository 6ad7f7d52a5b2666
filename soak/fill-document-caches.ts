import fc from 'fast-check';
import { randomOperation } from '../test/refold/random-operations.ts';

/** More than a gateway's caches hold: its heap grows until its document caches are full. */
const charactersToSend = 1_500_000;

/**
 * Sends random documents to a gateway, all different, and ignores the responses. Compiled queries keep their documents, and so does the parser. After
 * the first part both keep the same ones; the executor answers the second part, which only the parser keeps.
 */
export async function fillDocumentCaches(url: string, seed: number): Promise<void> {
  const firstSeed = seed * 100_000 + 50_000;
  const drawn = await send(url, firstSeed, {});
  await send(url, firstSeed + drawn, { 'refold-position': '1' });
}

async function send(url: string, firstSeed: number, headers: Readonly<Record<string, string>>): Promise<number> {
  let sent = 0;
  let drawn = 0;
  for (; sent < charactersToSend; drawn++) {
    for (const operation of fc.sample(randomOperation, { numRuns: 25, seed: firstSeed + drawn })) {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'filler', ...headers },
        body: JSON.stringify(operation),
      });
      await response.arrayBuffer();
      sent += operation.query.length;
    }
  }
  return drawn;
}
