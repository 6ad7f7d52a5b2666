import { subscribe } from './server-sent-events.ts';
import type { SubscribersOptions } from './subscribers.ts';
import { subscribeOverWebSocket } from './web-socket.ts';

const { url, query, count } = JSON.parse(process.argv[2] ?? '') as SubscribersOptions;
const seen = new Map<number, number>();
// The rest of a message may arrive later.
const longestMatch = 100;
process.once('disconnect', () => process.exit(0));

for (let opened = 0; opened < count; opened += 100) {
  // Not all at once: a listening socket has a short queue.
  await Promise.all(Array.from({ length: Math.min(100, count - opened) }, open));
}

function open(): Promise<unknown> {
  let tail = '';
  return new Promise((resolve) => {
    const onText = (text: string) => {
      tail += text;
      let end = 0;
      for (const { 0: match, 1: items, index } of tail.matchAll(/"items":(\d+),/g)) {
        end = index + match.length;
        resolve(undefined);
        note(Number(items));
      }
      tail = tail.slice(end).slice(-longestMatch);
    };
    const onClosed = (lastText: string) => {
      throw new Error(`The server closed a subscription. It sent last: ${lastText}`);
    };
    void (url.startsWith('ws:') ? subscribeOverWebSocket : subscribe)(url, query, { onText, onClosed });
  });
}

function note(items: number): void {
  const subscribers = (seen.get(items) ?? 0) + 1;
  seen.set(items, subscribers);
  if (subscribers === count) process.send?.({ items, at: process.hrtime.bigint().toString() });
}
