import { LRUCache } from 'lru-cache';

// More than the clients of an application have.
const mostDocuments = 1024;
// A document may be as long as a body. What is kept of it, parsed and compiled, takes about 120 bytes a character: 60 MB.
const mostCharacters = 500_000;

/** What is known of documents by their text, of those that came last: bounded by their number and by how long they are together. */
export function createDocumentCache<Value extends object>(): LRUCache<string, Value> {
  return new LRUCache<string, Value>({
    max: mostDocuments,
    maxSize: mostCharacters,
    sizeCalculation: (_, text) => text.length + 1, // an empty one has a size, too
  });
}
