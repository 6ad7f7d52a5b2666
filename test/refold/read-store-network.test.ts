import { startOwnServer } from '../support/own-server.ts';
import { readStoreNetwork } from './read-store-network.ts';

readStoreNetwork(startOwnServer);
