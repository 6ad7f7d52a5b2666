import pg from 'pg';

/**
 * A connection of the driver. One that is lost fails what is asked of it next: where a scenario fails, the server is stopped under those that
 * are still open, and that must not end the process before the scenario's error is told.
 */
export async function openClient(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'bench' });
  client.on('error', () => {});
  await client.connect();
  return client;
}
