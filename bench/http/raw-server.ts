/** The limit of a fan-out: each client gets the bytes of each notification, written directly to its socket. */
import { createHash } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { openClient } from '../open-client.ts';
import { answerParent } from './answer-parent.ts';

const [, , url = ''] = process.argv;
const listener = await openClient(url);
await listener.query('listen raw_changes');
const sockets = { sse: new Set<Socket>(), ws: new Set<Socket>() };

const result = (items: string) =>
  `{"data":{"cartSummary":{"cartId":"cart-1","customer":"c","items":${items},"total":"0.00"}}}`;

function event(items: string): Buffer {
  const text = `event: next\ndata: ${result(items)}\n\n`;
  return Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`);
}

function frame(items: string): Buffer {
  const id = '00000000-0000-0000-0000-000000000000';
  const text = `{"id":"${id}","type":"next","payload":${result(items)}}`;
  return Buffer.concat([Buffer.from([0x81, 126, text.length >> 8, text.length & 255]), Buffer.from(text)]);
}

listener.on('notification', ({ payload = '' }) => {
  const bytes = { sse: event(payload), ws: frame(payload) };
  for (const socket of sockets.sse) socket.write(bytes.sse);
  for (const socket of sockets.ws) socket.write(bytes.ws);
});

const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.once('data', (request) => {
    const key = /sec-websocket-key: (\S+)/i.exec(String(request))?.[1];
    const transport = key === undefined ? 'sse' : 'ws';
    sockets[transport].add(socket);
    socket.once('close', () => sockets[transport].delete(socket));
    if (key === undefined) {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n');
      socket.write(event('0'));
      return;
    }
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n`,
    );
    socket.write(frame('0'));
  });
  socket.on('error', () => {});
});
server.listen(0, '127.0.0.1', 4096, () => {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  answerParent(`http://127.0.0.1:${port}`, async () => {
    for (const socket of [...sockets.sse, ...sockets.ws]) socket.destroy();
    await listener.end();
  });
});
