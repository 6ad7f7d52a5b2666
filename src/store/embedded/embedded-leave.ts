/**
 * `node embedded-leave.ts DATA_DIR PID`: started by an exiting process. Stops the embedded server of that process if no other process uses
 * it.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { embeddedBinaries, serverAccount } from './embedded-binaries.ts';
import { reachableBinaries } from './embedded-place.ts';
import { clientOf, isUser, runningServer, stopIfUnused } from './embedded-users.ts';

const [, , dataDir = '', leaving = ''] = process.argv;
const running = await runningServer(dataDir);
if (running) {
  const account = serverAccount();
  const binaries = await reachableBinaries(await embeddedBinaries(), account);
  const password = await readFile(join(dataDir, 'refold.password'), 'utf8');
  const client = clientOf(password, running.port);
  await client.connect();
  while (await isUser(client, Number(leaving))) await setTimeout(20);
  await stopIfUnused({ binaries, account, dataDir, password }, client);
  await client.end();
}
