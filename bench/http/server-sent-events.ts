import { connect } from 'node:net';

export interface Subscriber {
  close(): void;
}

export interface SubscriberEvents {
  /** Text as it arrives; a message may come in parts. */
  onText(text: string): void;
  /** The connection is closed, by whichever side. */
  onClosed?(lastText: string): void;
}

/** Subscribes over a bare socket. */
export function subscribe(url: string, query: string, { onText, onClosed }: SubscriberEvents): Promise<Subscriber> {
  const { hostname, port, host, pathname } = new URL(url);
  const body = JSON.stringify({ query });
  let last = '';
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    socket.setEncoding('latin1'); // the searched text is ASCII
    socket.on('data', (chunk) => {
      last = String(chunk);
      onText(last);
    });
    socket.on('error', reject);
    socket.once('close', () => onClosed?.(last));
    socket.once('connect', () => {
      socket.write(
        `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
      resolve({ close: () => socket.destroy() });
    });
  });
}
