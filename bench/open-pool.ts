import pg from 'pg';

/** A plain pool of the driver, for limits and for looking at results. */
export function openPool(url: string, connections: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: connections, application_name: 'bench' });
  // The driver says that a pool has ended before its connections have; the server may stop in between.
  pool.on('error', () => {});
  return pool;
}
