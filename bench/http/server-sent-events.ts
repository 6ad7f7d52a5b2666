import { connect } from 'node:net';

export interface Subscriber {
  close(): void;
}

/** Subscribes over a bare socket and passes on text as it arrives; a message may come in parts. */
export function subscribe(url: string, query: string, onText: (text: string) => void): Promise<Subscriber> {
  const { hostname, port, host, pathname } = new URL(url);
  const body = JSON.stringify({ query });
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    socket.setEncoding('latin1'); // the searched text is ASCII
    socket.on('data', (chunk) => onText(String(chunk)));
    socket.on('error', reject);
    socket.once('connect', () => {
      socket.write(
        `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
      resolve({ close: () => socket.destroy() });
    });
  });
}
