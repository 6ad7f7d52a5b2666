/** The load generator: bare sockets, because Node's own HTTP client would use more of the machine than the measured servers. */
import { connect } from 'node:net';
import { callsPerSecond } from '../calls-per-second.ts';
import type { Load } from './load.ts';

process.once('message', (load: Load) => {
  measure(load)
    .then(
      (figure) => process.send?.(figure),
      (error: unknown) => process.send?.(String(error)),
    )
    .finally(() => process.disconnect());
});

async function measure({ url, requests, connections, milliseconds }: Load): Promise<number> {
  const { hostname, port, host } = new URL(url);
  const texts = requests.map(({ path, body }) =>
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\naccept: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    ),
  );
  const clients = await Promise.all(Array.from({ length: connections }, () => openClient(hostname, Number(port))));
  let sent = 0;
  const ask = async (caller: number) => {
    const number = sent++ % requests.length;
    const answer = await clients[caller]?.ask(texts[number] as Buffer); // number < requests.length
    if (!answer?.includes(requests[number]?.expected ?? '')) throw new Error(`Unexpected response: ${answer}`);
  };
  try {
    await callsPerSecond(connections, milliseconds / 4, ask); // lets hot code be compiled
    return await callsPerSecond(connections, milliseconds, ask);
  } finally {
    for (const client of clients) client.close();
  }
}

interface Client {
  /** The whole response, head and body. */
  ask(request: Buffer): Promise<Buffer>;
  close(): void;
}

function openClient(host: string, port: number): Promise<Client> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    let received = Buffer.alloc(0);
    let waiting: { resolve(answer: Buffer): void; reject(error: Error): void } | undefined;
    const fail = (error: Error) => (waiting ? waiting.reject(error) : reject(error));
    socket.on('data', (chunk) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      const length = answerLength(received);
      if (length === undefined || received.length < length) return;
      const answer = received.subarray(0, length);
      received = received.subarray(length);
      waiting?.resolve(answer);
    });
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('The server closed a connection.')));
    socket.once('connect', () =>
      resolve({
        ask: (request) =>
          new Promise((answered, failed) => {
            waiting = { resolve: answered, reject: failed };
            socket.write(request);
          }),
        close: () => socket.destroy(),
      }),
    );
  });
}

/** The length of head and body together; undefined while the head is incomplete. */
function answerLength(received: Buffer): number | undefined {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = received.toString('latin1', 0, headEnd);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return headEnd + 4 + Number(length);
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) throw new Error(`A response without a length: ${head}`);
  const end = received.indexOf('0\r\n\r\n', headEnd + 4, 'latin1');
  return end < 0 ? undefined : end + 5;
}
