import { startOwnServer } from '../support/own-server.ts';
import { readStoresContract } from './read-stores.ts';

readStoresContract(startOwnServer);
