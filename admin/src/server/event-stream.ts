export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

// The gateway sends a comment every 12 seconds. Three missing ones mean that the connection is gone.
const silenceMs = 40_000;

/** Reads server-sent events. `EventSource` can't be used: it sends no `Authorization` header. */
export async function* readEvents(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  const cancel = () => void reader.cancel().catch(() => {}); // it fails only if the stream has failed already
  signal.addEventListener('abort', cancel);
  let buffer = '';
  try {
    for (;;) {
      const silence = setTimeout(cancel, silenceMs);
      const { value, done } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return;
      buffer += value.replaceAll('\r\n', '\n');
      for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
        yield parse(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
      }
    }
  } finally {
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}

function parse(block: string): ServerEvent {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) event = line.slice(6).trim();
    if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
  return { event, data: data.join('\n') };
}
