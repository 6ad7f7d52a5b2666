import { connect } from 'node:net';
import type { Subscriber, SubscriberEvents } from './server-sent-events.ts';

/** Like server-sent events: bare sockets, because a WebSocket object for each would use more of the machine than the servers. */
export function subscribeOverWebSocket(
  url: string,
  query: string,
  { onText, onClosed }: SubscriberEvents,
): Promise<Subscriber> {
  const { hostname, port, host, pathname } = new URL(url);
  let last = '';
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    socket.setEncoding('latin1'); // the searched text is ASCII
    const say = (message: object) => socket.write(clientFrame(JSON.stringify(message)));
    socket.on('data', (chunk) => {
      const text = String(chunk);
      last = text;
      if (text.startsWith('HTTP/1.1 101')) say({ type: 'connection_init' });
      if (text.includes('connection_ack')) say({ id: crypto.randomUUID(), type: 'subscribe', payload: { query } });
      // The server disconnects a client that does not answer its pings.
      if (text.includes('\x89\x00')) socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]));
      onText(text);
    });
    socket.on('error', reject);
    socket.once('close', () => onClosed?.(last));
    socket.once('connect', () => {
      socket.write(
        `GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n`,
      );
      resolve({ close: () => socket.destroy() });
    });
  });
}

/** A text in a masked frame, as clients must send it. The mask is zero, which leaves the text as it is. */
function clientFrame(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 65_535) throw new Error('Expected a message of at most 65,535 bytes.');
  const head =
    bytes.length < 126 ? [0x81, 0x80 | bytes.length] : [0x81, 0x80 | 126, bytes.length >> 8, bytes.length & 255];
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), bytes]);
}
