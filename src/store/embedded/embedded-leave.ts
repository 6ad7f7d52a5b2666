/**
 * `node embedded-leave.ts DATA_DIR USER`: waits for the end of its input and of the session USER, then stops the embedded server if no
 * process uses it. Any input dismisses it.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { embeddedBinaries, serverAccount } from './embedded-binaries.ts';
import { reachableBinaries } from './embedded-programs.ts';
import { embeddedClient, isUser, longestTransition, runningServer, stopIfUnused } from './embedded-users.ts';

const [, , dataDir = '', user = ''] = process.argv;
if ((await text(process.stdin)) === '') await leave();

async function leave(): Promise<void> {
  for (const deadline = performance.now() + longestTransition; performance.now() < deadline; await setTimeout(50)) {
    const running = await runningServer(dataDir);
    if (!running) return;
    const account = serverAccount();
    const binaries = await reachableBinaries(await embeddedBinaries(), account);
    const password = await readFile(join(dataDir, 'refold.password'), 'utf8');
    const client = embeddedClient(password, running.port);
    try {
      await client.connect();
      while (await isUser(client, user)) await setTimeout(20);
      await stopIfUnused({ binaries, account, dataDir, password }, client);
      return;
    } catch {
      // The server is starting or stopping.
    } finally {
      await client.end().catch(() => {});
    }
  }
}
