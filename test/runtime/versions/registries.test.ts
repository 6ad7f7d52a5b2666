import { expect, onTestFinished, test } from 'vitest';
import { createRegistries } from '../../../src/runtime/versions/registries.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { migrate } from '../../../src/store/server/migrate.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { createTestDatabase } from '../../support/test-database.ts';

test('no read of the registries waits for a store that has become silent; what it holds is read when it responds', async () => {
  const database = await createTestDatabase();
  const network = await startTcpProxy(Number(new URL(database.url).port));
  const home = createDatabase({ url: database.url });
  const apart = createDatabase({ url: network.through(database.url) });
  onTestFinished(async () => {
    await Promise.all([home.close(), apart.close()]);
    await network.close();
    await database.drop();
  });
  await migrate(home);
  let reads = 0;
  const registries = createRegistries(
    [
      { name: 'default', db: home },
      { name: 'apart', db: apart },
    ],
    () => reads++,
    () => {},
  );
  await registries.read();
  network.stallFromServer();
  let responded = false;
  const asked = apart.query({ text: 'select' }).then(() => {
    responded = true;
  });
  await registries.read();
  expect({ responded, reads }).toEqual({ responded: false, reads: 0 });
  network.resume();
  await asked;
  await expect.poll(() => reads).toBe(1);
});
