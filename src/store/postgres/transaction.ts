import pg from 'pg';
import { RefoldError } from '../../errors.ts';
import { isTracing } from '../../tracing.ts';
import { answerSize } from '../statements/answer-size.ts';
import { exactJsonParsers } from '../statements/column-parsers.ts';
import { placementText } from '../statements/placed.ts';
import { serverName } from '../statements/prepared.ts';
import { type Pipeline, roundTrip } from '../statements/round-trip.ts';
import type { Elsewhere, Queryable, Statement } from '../statements/statement.ts';
import { copyInto } from './copy-into.ts';
import { isConnectionLoss, nothingSent, translateDatabaseError, unknownOutcome } from './database-errors.ts';
import { LargeAnswer } from './large-answer.ts';
import { tracedStatement } from './traced-statement.ts';
import type { WatchedClient } from './watched-client.ts';

export interface TransactionOptions {
  /** @default 'read committed' */
  readonly isolation?: 'read committed' | 'repeatable read';
  /** @default false */
  readonly readOnly?: boolean;
  /**
   * The server rolls back the transaction if it is idle for this long, in milliseconds. A process that stalls in the middle then does not
   * keep its locks. @default 30 seconds, no limit if it only reads
   */
  readonly idleTimeoutMs?: number;
}

/** One transaction on one connection. */
export interface Transaction extends Queryable {
  readonly client: pg.PoolClient;
  /** Set if statements can be pipelined. */
  readonly pipeline: Pipeline | undefined;
  /** Runs `copy … from stdin` with these pieces of its text format. A piece may end anywhere. */
  copyInto(text: string, pieces: Iterable<string>): Promise<void>;
}

const longestIdleMs = 30_000;

/** How many statements were sent. */
export interface StatementCounts {
  readonly statements: number;
}

interface Sending {
  /** Whether named statements are prepared. */
  readonly prepare: boolean;
  readonly counts: { statements: number };
}

interface Conditions extends Sending {
  readonly url: string;
  /** Settings of the session that each transaction must set, as SQL that follows the `begin`. */
  readonly settings: string;
  readonly pipeline: boolean;
  readonly elsewhere: Elsewhere | undefined;
}

/** Commits if `work` returns, rolls back if it throws. Releases the connection. */
export async function inTransaction<T>(
  client: pg.PoolClient,
  { url, settings, pipeline, elsewhere, ...sending }: Conditions,
  work: (tx: Transaction) => Promise<T>,
  { isolation = 'read committed', readOnly = false, ...options }: TransactionOptions = {},
): Promise<T> {
  const translate = (error: unknown) => translateDatabaseError(error, url);
  const query: Transaction['query'] = (statement) =>
    rowsOf<never>(client, statement, sending).catch((error: unknown) => Promise.reject(translate(error)));
  const { idleTimeoutMs = readOnly ? undefined : longestIdleMs } = options;
  const idle = setLocally('idle_in_transaction_session_timeout', idleTimeoutMs);
  const held = elsewhere ? placementText(elsewhere, isolation) : '';
  // One message, regardless of the number of settings.
  const begin = { text: `begin isolation level ${isolation}${readOnly ? ' read only' : ''}${settings}${idle}${held}` };
  const together = pipeline ? sendTogether(client) : undefined;
  const transaction: Transaction = {
    client,
    pipeline: together,
    elsewhere,
    query,
    copyInto: (text, pieces) =>
      sent(client, text, () => copyInto(client, text, pieces)).catch((error: unknown) =>
        Promise.reject(translate(error)),
      ),
  };
  let broken: Error | undefined;
  let committing = false;
  try {
    const result = together && readOnly ? await beginAlong(together) : await beginFirst();
    committing = true;
    const { command } = await sent(client, 'commit', () => client.query('commit'));
    // PostgreSQL answers the commit of a failed transaction with ROLLBACK and no error.
    if (command !== 'COMMIT') {
      const problem = 'The transaction was rolled back: one of its statements had failed, and the failure was ignored.';
      throw new RefoldError('DATABASE_ERROR', problem);
    }
    return result;
  } catch (error) {
    await client.query('rollback').catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    // Errors of `work` are passed on unchanged, even if the connection broke. Errors of the driver come from the commit or the raw client.
    const translated =
      error instanceof pg.DatabaseError || (broken && isConnectionLoss(error)) ? translate(error) : error;
    if (committing) throw readOnly ? translated : unknownOutcome(translated);
    throw translated instanceof RefoldError ? nothingSent(translated) : translated; // nothing was committed
  } finally {
    client.release(broken);
  }

  async function beginFirst(): Promise<T> {
    await query(begin);
    return work(transaction);
  }

  /**
   * For read-only transactions: if the `begin` fails, a statement that writes would run outside of the transaction. The result is then
   * discarded.
   */
  async function beginAlong(send: Pipeline): Promise<T> {
    let begun: Promise<unknown> = Promise.resolve();
    const onceBegun: Transaction['query'] = async (statement) =>
      (await Promise.all([query<never>(statement), begun]))[0];
    const [, result] = await roundTrip<[unknown, T]>(send, [
      () => {
        begun = query(begin);
        return begun;
      },
      async () => work({ ...transaction, query: onceBegun }),
    ]);
    return result;
  }
}

/** Sends several statements as one packet. Otherwise each is a packet of its own, which wakes up this process and the server. */
export function sendTogether(client: pg.PoolClient): Pipeline {
  const { stream } = (client as WatchedClient & pg.PoolClient).connection; // the pool creates its clients from this class
  return (send) => {
    stream.cork();
    try {
      return send();
    } finally {
      stream.uncork();
    }
  };
}

/** Sends a statement, in a span if it is part of something that is traced. */
function sent<T>(client: pg.PoolClient, text: string, send: () => Promise<T>): Promise<T> {
  return isTracing ? tracedStatement(client, text, send) : send();
}

/** Runs a statement on a connection. Its errors are those of the driver. */
export async function rowsOf<Row extends object>(
  client: pg.PoolClient,
  statement: Statement,
  { prepare, counts }: Sending,
): Promise<Row[]> {
  counts.statements++;
  const { text, values, name, exactJson } = statement;
  const watched = client as WatchedClient & pg.PoolClient; // the pool creates its clients from this class
  if (watched.maxAnswerSize !== undefined) {
    const size = statement.size ?? answerSize(watched.maxAnswerSize);
    if (size.left < 0) throw new LargeAnswer(size);
    watched.answerSize = size;
  }
  const config = {
    text,
    ...(values === undefined ? {} : { values: values as unknown[] }), // pg does not change it
    ...(name === undefined || !prepare ? {} : { name: serverName(name, text) }),
    ...(exactJson ? { types: exactJsonParsers } : {}),
  };
  const result = await (isTracing
    ? tracedStatement(client, text, () => client.query<Row>(config))
    : client.query<Row>(config));
  return result.rows;
}

function setLocally(setting: string, milliseconds: number | undefined): string {
  return milliseconds === undefined ? '' : `; set local ${setting} = ${Math.trunc(milliseconds)}`;
}
