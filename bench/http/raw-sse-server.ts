/** The limit of a fan-out: whoever connects gets the bytes of each notification, written to its bare socket. */
import { createServer, type Socket } from 'node:net';
import pg from 'pg';
import { answerParent } from './answer-parent.ts';

const [, , url = ''] = process.argv;
const listener = new pg.Client({ connectionString: url });
await listener.connect();
await listener.query('listen raw_changes');
const sockets = new Set<Socket>();

const event = (items: string) => {
  const text = `event: next\ndata: {"data":{"cartSummary":{"cartId":"cart-1","customer":"c","items":${items},"total":"0.00"}}}\n\n`;
  return Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`);
};
listener.on('notification', ({ payload = '' }) => {
  const bytes = event(payload);
  for (const socket of sockets) socket.write(bytes);
});

const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.once('data', () => {
    sockets.add(socket);
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n');
    socket.write(event('0'));
  });
  socket.on('error', () => {});
  socket.once('close', () => sockets.delete(socket));
});
server.listen(0, '127.0.0.1', 4096, () => {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  answerParent(`http://127.0.0.1:${port}`, async () => {
    for (const socket of sockets) socket.destroy();
    await listener.end();
  });
});
