import { changeFeedClients } from './change-feed-clients.property.ts';

changeFeedClients(undefined, 3);
