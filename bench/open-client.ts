import pg from 'pg';

/**
 * A connection of the driver. A lost connection fails its next statement. When a scenario fails, the server is stopped while connections are
 * open. This must not end the process before the scenario's error is printed.
 */
export async function openClient(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'bench' });
  client.on('error', () => {});
  await client.connect();
  return client;
}
