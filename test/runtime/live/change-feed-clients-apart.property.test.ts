import { startOwnServer } from '../../support/own-server.ts';
import { changeFeedClients } from './change-feed-clients.property.ts';

changeFeedClients(startOwnServer);
