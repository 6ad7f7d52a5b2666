import pg from 'pg';
import { type AnswerDeadline, closeWhenSilent } from './answer-deadline.ts';
import type { HostChoice } from './host-choice.ts';

export interface WatchedClientConfig extends pg.ClientConfig {
  readonly answerDeadline?: AnswerDeadline | undefined;
  /** Where the URL names several hosts, or what a host has to be. */
  readonly hostChoice?: HostChoice | undefined;
}

// A server in reach closes a connection within milliseconds; one that is silent never does.
const goodbyeMs = 1000;

/**
 * A connection that notices a silent server, and that finds its host among those of the URL.
 *
 * Inherits, since the driver has no options for it, and its pool makes its clients from a class.
 */
export class WatchedClient extends pg.Client {
  readonly #hostChoice: HostChoice | undefined;

  constructor(config: WatchedClientConfig = {}) {
    super(config);
    const { answerDeadline, hostChoice } = config;
    this.#hostChoice = hostChoice;
    // From the first moment: the pool adds its own when it is called back, and a server may end the session before that.
    this.on('error', () => {});
    if (answerDeadline) this.once('connect', () => closeWhenSilent(this, answerDeadline));
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    const connected = this.#hostChoice ? this.#connectTo(this.#hostChoice) : super.connect();
    if (!callback) return connected;
    connected.then(() => (callback as () => void)(), callback); // the driver's pool gives one that takes no error, too
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
