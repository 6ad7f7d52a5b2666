import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { startOwnServer } from './own-server.ts';

describe("a test file's own server", async () => {
  const server = await startOwnServer({ settings: { wal_level: 'logical' } });
  afterAll(() => server.stop());

  const ask = async (statement: string) => {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    const { rows } = await client.query<{ answer: string }>(statement);
    await client.end();
    return rows[0]?.answer;
  };

  test('has the settings that it was started with', async () => {
    expect(await ask(`select current_setting('wal_level') as answer`)).toBe('logical');
  });

  test('keeps what was committed, after a kill and a restart', async () => {
    await ask(`create table kept as select 'committed' as answer`);
    const open = new pg.Client({ connectionString: server.url });
    const lost = new Promise<Error>((resolve) => open.on('error', resolve));
    await open.connect();
    await open.query('begin');
    await open.query(`insert into kept values ('not committed')`);

    await server.kill();
    expect(await lost).toBeInstanceOf(Error);
    await expect(ask('select 1')).rejects.toThrow();

    await server.restart();
    expect(await ask(`select string_agg(answer, ', ') as answer from kept`)).toBe('committed');
  });
});
