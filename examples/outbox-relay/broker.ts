/** A message that leaves the application. */
export interface BrokerMessage {
  /** The event's id. It stays the same if the message is sent again: receivers detect duplicates by it. */
  readonly id: string;
  /** The kind of message, such as `order.OrderPlaced`: receivers filter by it. */
  readonly subject: string;
  /** The event's stream. Messages of one stream are sent in order. */
  readonly key: string;
  /** JSON. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the relay needs from a broker. */
export interface Broker {
  /** Resolves when the broker has stored the messages durably. Rejects if that is not known; then they are sent again. */
  publish(messages: readonly BrokerMessage[]): Promise<void>;
  close(): Promise<void>;
}
