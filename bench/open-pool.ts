import pg from 'pg';

/** A plain pool of the driver, for limits and for checking results. */
export function openPool(url: string, connections: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: connections, application_name: 'bench' });
  // The driver reports the end of a pool before its connections have ended; the server may stop in between.
  pool.on('error', () => {});
  return pool;
}
