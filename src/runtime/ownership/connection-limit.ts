import type { CheckedDatabase } from '../../config/database-options.ts';
import { readLiveProcesses } from '../../store/ownership/live-processes.ts';
import { readAdmittedConnections } from '../../store/server/server-facts.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** Returns a warning if this process and the live ones together may open more connections than the server admits. Skipped behind a pooler. */
export async function connectionLimitWarnings(
  db: Queryable,
  { maxConnections, notifications: sessions }: Pick<CheckedDatabase, 'maxConnections' | 'notifications'>,
): Promise<readonly string[]> {
  if (!sessions) return [];
  const others = (await readLiveProcesses(db)).length;
  const admitted = await readAdmittedConnections(db);
  const wanted = (others + 1) * maxConnections;
  if (wanted <= admitted) return [];
  const all = others === 0 ? 'this process' : `this process and ${others} that live already`;
  return [
    `The server admits ${admitted} connections, and ${all} may open ${wanted} (database.maxConnections is ${maxConnections}). When none is left, statements wait. ` +
      `Lower maxConnections to ${Math.floor(admitted / (others + 1))} at most, raise the server's max_connections, or use a pooler.`,
  ];
}
