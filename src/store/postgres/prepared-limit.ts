import type pg from 'pg';

// A prepared statement takes about 30 KB of the server's memory with its plan. 500 take 15 MB. Refold's own statements are fewer than half
// of that.
export const maxPrepared = 500;

/** The driver's record of prepared names. */
interface Remembers {
  readonly parsedStatements: Record<string, string | undefined>;
}

/**
 * Makes a connection deallocate the least recently used statement before it prepares more than `most`. The message is sent together with
 * the messages that prepare the next one and costs no round trip. Poolers that track prepared statements support it.
 */
export function limitPrepared(connection: pg.Connection, most = maxPrepared): void {
  const { parsedStatements } = connection as pg.Connection & Remembers;
  const parse = connection.parse.bind(connection);
  const bind = connection.bind.bind(connection);
  const names = new Set<string>(); // the most recently used name is last
  connection.parse = (query, more) => {
    const { name } = query;
    if (name) {
      names.delete(name);
      const [oldest] = names;
      if (names.size >= most && oldest !== undefined) {
        names.delete(oldest);
        delete parsedStatements[oldest];
        connection.close({ type: 'S', name: oldest }, more);
      }
      names.add(name);
    }
    parse(query, more);
  };
  connection.bind = (config, more) => {
    const statement = config?.statement;
    if (statement && names.delete(statement)) names.add(statement);
    bind(config, more);
  };
}
