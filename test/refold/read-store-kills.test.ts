import { afterAll } from 'vitest';
import { effort } from '../support/effort.ts';
import { startOwnServer } from '../support/own-server.ts';
import { readStoreKills } from './read-store-kills.ts';

const server = await startOwnServer();
await readStoreKills(
  { url: server.url, restart: (random) => server.restart(random() < 0.5 ? 'fast' : 'immediate') },
  effort(30, 4),
);
afterAll(() => server.stop());
