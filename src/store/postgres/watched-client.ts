import pg from 'pg';
import type { AnswerSize } from '../statements/statement.ts';
import { type AnswerDeadline, closeWhenSilent } from './answer-deadline.ts';
import type { HostChoice } from './host-choice.ts';
import { endLargeAnswers } from './large-answer.ts';

export interface WatchedClientConfig extends pg.ClientConfig {
  readonly answerDeadline?: AnswerDeadline | undefined;
  /** Set if the URL lists several hosts, or requires a kind of host. */
  readonly hostChoice?: HostChoice | undefined;
  /** The most bytes of an answer. @default no limit */
  readonly maxAnswerSize?: number | undefined;
}

// A reachable server closes a connection within milliseconds. A silent one never does.
const goodbyeMs = 1000;

/**
 * A connection that detects a silent server and chooses its host from those of the URL.
 *
 * A subclass, because the driver has no options for this and its pool creates its clients from a class.
 */
export class WatchedClient extends pg.Client {
  readonly #hostChoice: HostChoice | undefined;
  readonly maxAnswerSize: number | undefined;
  /** Of the statement that was sent last. */
  answerSize: AnswerSize | undefined;

  constructor(config: WatchedClientConfig = {}) {
    super(config);
    const { answerDeadline, hostChoice, maxAnswerSize } = config;
    this.#hostChoice = hostChoice;
    this.maxAnswerSize = maxAnswerSize;
    // Added at once: the pool adds its own listener later, in its callback, and the server may end the session before that.
    this.on('error', () => {});
    if (answerDeadline) this.once('connect', () => closeWhenSilent(this, answerDeadline));
    if (maxAnswerSize !== undefined) this.once('connect', () => endLargeAnswers(this));
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    const connected = this.#hostChoice ? this.#connectTo(this.#hostChoice) : super.connect();
    if (!callback) return connected;
    connected.then(() => (callback as () => void)(), callback); // the driver's pool passes a callback that also accepts no error
    return undefined;
  }

  async #connectTo(choice: HostChoice): Promise<pg.Client> {
    const { host, port } = await choice.choose();
    if (host !== '') Object.assign(this, { host, port });
    await super.connect();
    try {
      await choice.verify(this);
    } catch (error) {
      this.connection.stream.destroy();
      throw error;
    }
    return this;
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | undefined {
    const goodbye = setTimeout(() => this.connection.stream.destroy(), goodbyeMs);
    this.once('end', () => clearTimeout(goodbye));
    if (callback) return void super.end(callback);
    return super.end().finally(() => clearTimeout(goodbye));
  }
}
