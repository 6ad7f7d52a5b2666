/** What leaves the application. */
export interface BrokerMessage {
  /** The event's id, the same however often the message is sent: receivers tell repetitions by it. */
  readonly id: string;
  /** `order.OrderPlaced`: what it is, for whoever chooses what to receive. */
  readonly subject: string;
  /** The event's stream. Messages of one stream are sent in their order. */
  readonly key: string;
  /** JSON. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the relay needs of a broker. */
export interface Broker {
  /** Resolves when the broker has the messages for good; rejects where that is not known, and they are sent again. */
  publish(messages: readonly BrokerMessage[]): Promise<void>;
  close(): Promise<void>;
}
