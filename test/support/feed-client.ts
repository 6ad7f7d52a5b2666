/** A message of a subscription's field. */
export type FeedMessage = Readonly<Record<string, unknown>>;

/** A subscription over server-sent events. */
export interface Feed {
  readonly messages: readonly FeedMessage[];
  /** The ids of the rows that a client of a change feed knows. */
  readonly rows: ReadonlySet<string>;
  readonly cursor: string | undefined;
  stop(): Promise<void>;
}

/** `field` is the subscribed field, such as `balanceChanges { … }`. Keys are `{ accountId }`. */
export function followFeed(url: string, field: string): Feed {
  const ending = new AbortController();
  const messages: FeedMessage[] = [];
  const rows = new Set<string>();
  let cursor: string | undefined;
  const address = `${url}?query=${encodeURIComponent(`subscription { ${field} }`)}`;

  function apply(message: FeedMessage): void {
    messages.push(message);
    if (message.reset === true) rows.clear();
    const { changes = [] } = message as { changes?: { operation: string; key: { accountId: string } }[] };
    for (const { operation, key } of changes) {
      if (operation === 'UPSERT') rows.add(key.accountId);
      else rows.delete(key.accountId);
    }
    if (typeof message.cursor === 'string') cursor = message.cursor;
  }

  const running = readEvents(address, ending.signal, (data) => {
    for (const message of Object.values(data)) if (message) apply(message);
  });
  return {
    messages,
    rows,
    get cursor() {
      return cursor;
    },
    async stop() {
      ending.abort();
      await running;
    },
  };
}

async function readEvents(
  url: string,
  signal: AbortSignal,
  next: (data: Record<string, FeedMessage | null>) => void,
): Promise<void> {
  try {
    const { body } = await fetch(url, { headers: { accept: 'text/event-stream' }, signal });
    let text = '';
    for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1];
        text = text.slice(end + 2);
        const answer = data ? (JSON.parse(data) as { data?: Record<string, FeedMessage | null> }) : undefined;
        if (answer?.data) next(answer.data);
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
