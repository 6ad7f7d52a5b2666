import { replicaContract } from './replica.ts';

replicaContract('store');
