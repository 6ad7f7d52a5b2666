export interface EventStreamMessage {
  /** `next` or `complete` */
  readonly name: string;
  readonly data: string;
}

/** The events of a response, as they arrive. A response that is not a stream is one event. */
export async function* readEventStream(response: Response): AsyncGenerator<EventStreamMessage> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    yield { name: 'next', data: await response.text() };
    return;
  }
  let left = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    const blocks = (left + decoder.decode(bytes, { stream: true })).split('\n\n');
    left = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => [fieldName(line), line.slice(line.indexOf(':') + 1).trim()]),
      );
      const name = fields.get('event');
      if (name !== undefined) yield { name, data: fields.get('data') ?? '' };
    }
  }
}

function fieldName(line: string): string {
  return line.slice(0, line.indexOf(':'));
}
