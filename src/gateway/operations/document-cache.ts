import { LRUCache } from 'lru-cache';

// More than the clients of an application use.
const maxDocuments = 1024;
// A document may be as long as a body. Its parsed and compiled form takes about 120 bytes a character: 60 MB in total. The parser and the compiled
// queries each have a cache, which hold the same documents at first, and others later.
const maxCharacters = 500_000;

/** An LRU cache by document text, limited by the number of documents and by their total length. */
export function createDocumentCache<Value extends object>(): LRUCache<string, Value> {
  return new LRUCache<string, Value>({
    max: maxDocuments,
    maxSize: maxCharacters,
    sizeCalculation: (_, text) => text.length + 1, // an empty document needs a size too
  });
}
