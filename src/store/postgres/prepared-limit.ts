import type pg from 'pg';

// What a statement of a connection takes of the server's memory, some 30 KB with its plan, times this: 15 MB. The code's own are fewer than half.
export const mostPrepared = 500;

/** What the driver remembers of the names that it has prepared. */
interface Remembers {
  readonly parsedStatements: Record<string, string | undefined>;
}

/**
 * Has a connection give up the statement that was not used for longest where it would prepare more than so many. The message goes along with
 * those that prepare the next one, and costs no round trip; poolers that keep track of prepared statements understand it.
 */
export function limitPrepared(connection: pg.Connection, most = mostPrepared): void {
  const { parsedStatements } = connection as pg.Connection & Remembers;
  const parse = connection.parse.bind(connection);
  const bind = connection.bind.bind(connection);
  const names = new Set<string>(); // the one that was used last comes last
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
